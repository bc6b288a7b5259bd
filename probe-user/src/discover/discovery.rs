//! What was found.

use std::path::PathBuf;
use std::time::Duration;

use super::ca_hash::CaHash;
use super::kubeconfig::{Kubeconfig, Pem};
use super::origin::{Found, Origin};
use super::secret::BootstrapToken;
use crate::target::TargetSpec;

/// Everything found on this node, nothing of it tried yet.
#[derive(Default)]
pub struct Discovery {
    /// What this node is, or is about to become.
    pub node: NodeKind,
    /// Where that is said.
    pub node_origin: Option<Origin>,
    /// etcd is not the cluster's own.
    pub external_etcd: Option<Origin>,
    /// What to measure, in the order found; each address once.
    pub targets: Vec<FoundTarget>,
    /// Whom to trust as API server.
    pub api_trust: ApiTrust,
    /// Whom to trust as etcd and what to show it, best first. Every file named is there.
    pub etcd_credentials: Vec<EtcdCredential>,
    /// CA certificate and key that can sign a client certificate for etcd.
    pub etcd_signer: Option<SignerFiles>,
    /// CA certificate and key that can sign a client certificate for the API server.
    pub cluster_signer: Option<SignerFiles>,
    /// The kubeconfigs, in the order of trust put in them.
    pub kubeconfigs: Vec<Kubeconfig>,
    /// etcd's heartbeat interval.
    pub heartbeat: Option<Found<Duration>>,
    /// etcd's election timeout.
    pub election: Option<Found<Duration>>,
    /// What a reader should know about the files.
    pub notes: Vec<Note>,
    /// Every file that was looked for and is not there.
    pub absent: Vec<PathBuf>,
}

/// What the node is, or is about to become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeKind {
    /// Nothing on disk says.
    #[default]
    Unknown,
    /// About to join as a control-plane node.
    JoiningControlPlane,
    /// About to join as a worker.
    JoiningWorker,
    /// A control-plane node: it runs an API server or an etcd member.
    ControlPlane,
    /// A node with a kubelet and no control plane.
    Worker,
}

impl NodeKind {
    /// Whether the node needs etcd, so that a run without etcd is no pass.
    #[must_use]
    pub const fn needs_etcd(self) -> bool {
        matches!(self, Self::JoiningControlPlane | Self::ControlPlane)
    }

    /// Words for people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Unknown => "a node of unknown role",
            Self::JoiningControlPlane => "a joining control-plane node",
            Self::JoiningWorker => "a joining worker",
            Self::ControlPlane => "a control-plane node",
            Self::Worker => "a worker",
        }
    }
}

/// A target and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundTarget {
    /// Whom to dial.
    pub spec: TargetSpec,
    /// Where it was found; the first is the one to show.
    pub origins: Vec<Origin>,
    /// It may have gone since: an address in `--initial-cluster` is from the day the member started.
    pub tentative: bool,
    /// The name the server's certificate has to show, where it is not the host's.
    pub server_name: Option<String>,
}

/// Whom to trust as API server.
#[derive(Default)]
pub struct ApiTrust {
    /// CAs on disk, best first.
    pub cas: Vec<Found<Pem>>,
    /// Pins of the CA's key.
    pub pins: Option<Found<Vec<CaHash>>>,
    /// Checks the signature of cluster-info. Never sent.
    pub token: Option<Found<BootstrapToken>>,
    /// The API server that `pins` and `token` are for.
    pub endpoint: Option<Found<TargetSpec>>,
    /// Verification is switched off there.
    pub skips_verification: Option<Origin>,
}

/// A CA for etcd, with a client certificate and its key where there are any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdCredential {
    /// CA of the members' certificates.
    pub ca: PathBuf,
    /// Client certificate and key.
    pub pair: Option<(PathBuf, PathBuf)>,
    /// What names them, or the directory where they are by convention.
    pub origin: Origin,
}

/// A CA's certificate and key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignerFiles {
    /// The CA's certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// What a reader should know about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// It is worth a warning.
    pub warns: bool,
    /// One sentence.
    pub text: String,
}
