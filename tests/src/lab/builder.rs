//! Bringing a lab up.

use std::sync::Arc;

use anyhow::{Context, Result};

use super::node::Node;
use super::{APISERVER_PORT, Lab};
use crate::apiserver::ApiServer;
use crate::etcd::{Disk, EtcdCluster};
use crate::link::{Impairment, Link, NodeId};
use crate::pki::ClusterPki;
use crate::unique::scratch_dir;

/// What a lab shall have.
#[derive(Debug, Clone)]
pub struct LabBuilder {
    members: u8,
    spares: u8,
    impairment: Impairment,
    disk: Disk,
    seed: u64,
}

impl Default for LabBuilder {
    fn default() -> Self {
        Self {
            members: 3,
            spares: 0,
            impairment: Impairment::default(),
            disk: Disk::default(),
            seed: 1,
        }
    }
}

impl LabBuilder {
    /// How many etcd members; their hosts are 10.1.0.1 and so on.
    #[must_use]
    pub fn members(self, members: u8) -> Self {
        Self { members, ..self }
    }

    /// How many further hosts on which nothing runs; 10.1.0.101 and so on.
    #[must_use]
    pub fn spare_nodes(self, spares: u8) -> Self {
        Self { spares, ..self }
    }

    /// What lies between the joining node and the others from the moment the cluster is up.
    #[must_use]
    pub fn shape(self, impairment: Impairment) -> Self {
        Self { impairment, ..self }
    }

    /// The disk below every etcd member.
    #[must_use]
    pub fn disk(self, disk: Disk) -> Self {
        Self { disk, ..self }
    }

    /// The seed of the link's random choices.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Brings it up and waits until the cluster is healthy.
    ///
    /// # Errors
    /// When something of it cannot be made (root is needed) or the cluster does not become healthy.
    pub fn start(self) -> Result<Lab> {
        let folder = scratch_dir()?;
        let mut nodes = Vec::new();
        let mut add = |name: &str, host: u8| -> Result<Arc<Node>> {
            let node = Arc::new(Node::create(name, NodeId(nodes.len()), host)?);
            nodes.push(Arc::clone(&node));
            Ok(node)
        };
        let joiner = add("cp-new", 10)?;
        let apiserver_node = add("api", 6)?;
        let member_nodes = (1..=self.members)
            .map(|i| add(&format!("cp-{i}"), i))
            .collect::<Result<Vec<_>>>()?;
        let spare_nodes = (1..=self.spares)
            .map(|i| add(&format!("spare-{i}"), 100 + i))
            .collect::<Result<Vec<_>>>()?;
        let ends: Vec<_> = nodes.iter().map(|node| node.end()).collect();
        let link = Link::start(&ends, self.seed)?;
        let pki = ClusterPki::create(&folder.path().join("pki"))
            .context("cannot make the certificates")?;
        let apiserver = ApiServer::start(
            &apiserver_node.namespace,
            &[
                apiserver_node.at(APISERVER_PORT),
                apiserver_node.at_v6(APISERVER_PORT),
            ],
            &pki.apiserver(&apiserver_node.identity())?,
            &pki.kubernetes.pair.cert,
        )?;
        let etcd = EtcdCluster::start(&member_nodes, &pki, &folder.path().join("etcd"), self.disk)?;
        let lab = Lab {
            apiserver,
            etcd,
            link,
            joiner,
            member_nodes,
            apiserver_node,
            spare_nodes,
            pki,
            folder,
        };
        lab.shape(self.impairment);
        Ok(lab)
    }
}
