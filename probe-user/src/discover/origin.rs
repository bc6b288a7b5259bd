//! Where a value was found.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where a value was found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A command line flag, with its dashes.
    Flag(String),
    /// An environment variable.
    Environment(String),
    /// A field of a file, or the file itself where `field` is empty.
    File {
        /// The file, as it can be opened.
        path: PathBuf,
        /// The field in dotted form, for example `discovery.bootstrapToken.apiServerEndpoint`, or a flag in a manifest.
        field: String,
    },
    /// An object or answer of the cluster, for example `pod kube-system/etcd-cp-1`.
    Cluster(String),
}

impl Origin {
    /// A whole file.
    #[must_use]
    pub fn file(path: &Path) -> Self {
        Self::File {
            path: path.to_owned(),
            field: String::new(),
        }
    }

    /// A field of a file.
    #[must_use]
    pub fn field(path: &Path, field: impl Into<String>) -> Self {
        Self::File {
            path: path.to_owned(),
            field: field.into(),
        }
    }

    /// The file, without the field.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File { path, .. } => Some(path),
            _ => None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => f.write_str(flag),
            Self::Environment(variable) => write!(f, "environment variable {variable}"),
            Self::File { path, field } if field.is_empty() => write!(f, "{}", path.display()),
            Self::File { path, field } => write!(f, "{} ({field})", path.display()),
            Self::Cluster(object) => f.write_str(object),
        }
    }
}

/// A value that remembers where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<T> {
    /// The value.
    pub value: T,
    /// Where it was found.
    pub origin: Origin,
}

impl<T> Found<T> {
    /// Pairs the two.
    pub const fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }
}
