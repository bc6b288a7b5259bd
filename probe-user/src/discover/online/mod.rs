//! What the cluster itself tells: its CA, where its etcd is, and who its members are.
//!
//! Each of these is one more connection beside the measured ones, made only where the files on disk leave a question
//! open or the user asked for it. All are read-only. A token is never sent, and a client certificate only to a server
//! that was verified.

mod api;
mod cluster_info;
mod connection;
mod etcd_pods;
mod members;
mod signature;
#[cfg(test)]
mod tests;
mod trust;

pub use api::{ApiServer, OnlineError};
pub use etcd_pods::{EtcdPod, EtcdPods, etcd_pods};
pub use members::{Member, members};
pub use trust::{Trust, TrustOutcome, api_server_trust};
