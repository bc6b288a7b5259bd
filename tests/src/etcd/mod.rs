//! A real etcd cluster, set up as kubeadm sets it up.

mod client;
mod cluster;
mod disk;
mod load;
mod member;
mod metrics;

pub use client::EtcdClient;
pub use cluster::EtcdCluster;
pub use disk::Disk;
pub use load::WriteLoad;
pub use member::{CLIENT_PORT, EtcdMember, METRICS_PORT, PEER_PORT};
pub use metrics::Metrics;
