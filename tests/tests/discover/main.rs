//! `joinprobe preflight` without targets, on nodes laid out as kubeadm and Cluster API leave them.

mod cluster_info;
mod node;
mod nodes;
mod refused;
mod secrets;
