//! Finds targets, trust and credentials where kubeadm and Cluster API put them.
//!
//! Files are read once, leniently, and never changed. What is found remembers where it was found. Nothing here opens a
//! connection; tokens and keys are wiped when dropped and cannot be printed.

mod assemble;
mod ca_hash;
mod credentials;
mod discovery;
mod endpoint;
mod error;
mod kubeadm;
mod kubeconfig;
mod manifest;
pub mod online;
mod origin;
mod root;
mod secret;
mod settings;
#[cfg(test)]
mod tests;
mod timing;
mod yaml;

use std::path::PathBuf;

use assemble::Assembly;
pub use ca_hash::{CaHash, HashError};
pub use discovery::{
    ApiTrust, Discovery, EtcdCredential, FoundTarget, NodeKind, Note, SignerFiles,
};
pub use error::{DiscoverError, Kind};
pub use kubeconfig::{Kubeconfig, Login, Pem};
pub use origin::{Found, Origin};
pub use root::Root;
pub use secret::{BootstrapToken, Secret};
pub use settings::{Setting, settings};
pub use timing::{RaftTiming, raft_timing};

/// Files that the user named. All are looked for below the root.
#[derive(Clone, Debug, Default)]
pub struct Hints {
    /// kubeadm's join configuration, instead of the usual places.
    pub join_config: Option<PathBuf>,
    /// A kubeconfig, instead of those in /etc/kubernetes.
    pub kubeconfig: Option<PathBuf>,
}

/// Looks through the node's files.
///
/// # Errors
/// A file that was named is missing or no good, or so is the join configuration, over which `kubeadm join` itself would
/// stumble. Other files that are no good become notes.
pub fn discover(root: &Root, hints: &Hints) -> Result<Discovery, DiscoverError> {
    Assembly::new(root).run(hints)
}
