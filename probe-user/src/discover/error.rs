//! Why what is on disk could not be used.

use std::fmt;
use std::path::{Path, PathBuf};

/// What a file was meant to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// kubeadm's JoinConfiguration, with whatever documents stand beside it.
    JoinConfig,
    /// kubeadm's ClusterConfiguration.
    ClusterConfig,
    /// A kubeconfig.
    Kubeconfig,
    /// The manifest of a static pod.
    Manifest,
    /// joinprobe's own configuration file.
    Config,
    /// An answer of the API server.
    Answer,
}

impl Kind {
    /// What to do about a file of this kind that is no good.
    pub(super) const fn remedy(self) -> &'static str {
        match self {
            Self::JoinConfig => "compare it with `kubeadm config print join-defaults`",
            Self::ClusterConfig => "compare it with `kubeadm config print init-defaults`",
            Self::Kubeconfig => "check it with `kubectl config view --kubeconfig FILE`",
            Self::Manifest => "compare it with the manifests kubeadm writes",
            Self::Config => "every key is the name of a flag, without the dashes",
            Self::Answer => "check what answers at that address",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::JoinConfig => "kubeadm join configuration",
            Self::ClusterConfig => "kubeadm cluster configuration",
            Self::Kubeconfig => "kubeconfig",
            Self::Manifest => "static pod manifest",
            Self::Config => "configuration file",
            Self::Answer => "answer of the API server",
        })
    }
}

/// Why a file was refused: one sentence with the file, the field where there is one, the reason and the remedy. It
/// never holds what stood in the file, so that no token can come along.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    /// The file could not be opened or read.
    #[error("cannot read the {kind} {path}: {source}; check the path and its permissions", path = .path.display())]
    Unreadable {
        /// What the file was meant to be.
        kind: Kind,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file was read and is not what it should be.
    #[error("the {kind} {path} cannot be used: {reason}; {remedy}", path = .path.display())]
    Unusable {
        /// What the file was meant to be.
        kind: Kind,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// One field is not what it should be.
    #[error("{field} in the {kind} {path}{at} cannot be used: {reason}; {remedy}", path = .path.display(), at = Line(*.line))]
    Field {
        /// What the file was meant to be.
        kind: Kind,
        /// The file.
        path: PathBuf,
        /// Line in the file; 0 where it is not known.
        line: u64,
        /// The field, in dotted form.
        field: String,
        /// What is wrong.
        reason: String,
        /// What to do about it.
        remedy: &'static str,
    },
}

impl DiscoverError {
    /// Shorthand for [`DiscoverError::Unusable`] with the kind's own remedy.
    pub(super) fn unusable(kind: Kind, path: &Path, reason: impl Into<String>) -> Self {
        Self::Unusable {
            kind,
            path: path.to_owned(),
            reason: reason.into(),
            remedy: kind.remedy(),
        }
    }

    /// The file it is about.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Unreadable { path, .. }
            | Self::Unusable { path, .. }
            | Self::Field { path, .. } => path,
        }
    }
}

struct Line(u64);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            line => write!(f, ", line {line},"),
        }
    }
}
