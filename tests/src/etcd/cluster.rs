//! The members together.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use super::disk::Disk;
use super::member::{EtcdMember, PEER_PORT};
use super::metrics::Metrics;
use crate::lab::Node;
use crate::pki::ClusterPki;

/// Elections take a second or two; a loaded machine takes longer.
const PATIENCE: Duration = Duration::from_mins(1);

/// A cluster of one member per node.
#[derive(Debug)]
pub struct EtcdCluster {
    /// In the order of the nodes.
    pub members: Vec<EtcdMember>,
}

impl EtcdCluster {
    /// Starts a new cluster, all of it on this kind of disk, and waits until every member is healthy.
    ///
    /// # Errors
    /// When a member cannot be started or does not become healthy within a minute.
    pub fn start(nodes: &[Arc<Node>], pki: &ClusterPki, folder: &Path, disk: Disk) -> Result<Self> {
        let peers: Vec<String> = nodes
            .iter()
            .map(|node| format!("{}=https://{}", node.name, node.at(PEER_PORT)))
            .collect();
        let start = |node| EtcdMember::start_on(disk, node, pki, folder, &peers.join(","), "new");
        let mut members = nodes.iter().map(start).collect::<Result<Vec<_>>>()?;
        for member in &mut members {
            member.wait_healthy(PATIENCE)?;
        }
        Ok(Self { members })
    }

    /// Reads every member's counters.
    ///
    /// # Errors
    /// When one does not answer.
    pub fn metrics(&self) -> Result<Vec<Metrics>> {
        self.members.iter().map(EtcdMember::metrics).collect()
    }
}
