//! Certificates like those kubeadm makes, and broken ones.

mod authority;
mod cluster;

pub use authority::{Authority, Leaf, Pair, Usage, Validity};
pub use cluster::{ClusterPki, Identity};
