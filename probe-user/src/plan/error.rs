//! Why there is nothing to measure, or nothing to measure it with.

use std::path::PathBuf;

use crate::discover::DiscoverError;
use crate::tls::CredentialError;

/// Each is one sentence with the reason and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A file on this node is no good.
    #[error(transparent)]
    Discover(#[from] DiscoverError),
    /// Credentials that were given are unusable.
    #[error(transparent)]
    Credentials(#[from] CredentialError),
    /// Nothing was named and nothing was found.
    #[error(
        "no targets: none was named and none was found ({} not there); give the join configuration with \
         --join-config FILE, or name what this node must reach, for example `joinprobe preflight --etcd 10.0.0.1:2379 \
         --apiserver 10.0.0.1:6443`", list(.absent)
    )]
    NoTargets {
        /// Where it was looked for.
        absent: Vec<PathBuf>,
    },
}

fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<_> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    if paths.is_empty() {
        "nothing that would say is".to_owned()
    } else {
        paths.join(", ")
    }
}
