//! A cluster and a node about to join it.

mod builder;
mod joinprobe;
mod node;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tempfile::TempDir;

pub use builder::LabBuilder;
pub use joinprobe::{Finished, Running, binary};
pub use node::Node;

use crate::apiserver::ApiServer;
use crate::etcd::{CLIENT_PORT, EtcdCluster};
use crate::link::{Impairment, Link};
use crate::pki::ClusterPki;

/// Where the API server listens.
pub const APISERVER_PORT: u16 = 6443;

/// Everything, running. Dropping it takes it down.
///
/// All hosts are on one link. What [`Lab::shape`] sets lies between the joining node and every other host; members
/// and API server talk to each other without delay.
#[derive(Debug)]
pub struct Lab {
    /// The API server; on the host [`Lab::apiserver_node`].
    pub apiserver: ApiServer,
    /// The etcd cluster; on [`Lab::member_nodes`].
    pub etcd: EtcdCluster,
    /// The link between all hosts.
    pub link: Link,
    /// The node that wants to join.
    pub joiner: Arc<Node>,
    /// The etcd members' hosts.
    pub member_nodes: Vec<Arc<Node>>,
    /// The API server's host.
    pub apiserver_node: Arc<Node>,
    /// Hosts on which nothing runs yet.
    pub spare_nodes: Vec<Arc<Node>>,
    /// The cluster's certificates.
    pub pki: ClusterPki,
    folder: TempDir,
}

impl Lab {
    /// Describes a lab: three members, no delay.
    #[must_use]
    pub fn builder() -> LabBuilder {
        LabBuilder::default()
    }

    /// Sets what happens between the joining node and every other host, both ways.
    pub fn shape(&self, impairment: Impairment) {
        for node in self.others() {
            self.shape_to(node, impairment);
        }
    }

    /// Sets what happens between the joining node and one host, both ways.
    pub fn shape_to(&self, node: &Node, impairment: Impairment) {
        self.link.set_both(self.joiner.id, node.id, impairment);
    }

    /// Sets the round-trip time between the joining node and every other host, and nothing else.
    pub fn set_rtt(&self, rtt: Duration) {
        self.shape(Impairment::half_of_rtt(rtt));
    }

    /// A folder for a test's own files, in memory where possible.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// `preflight` with all members, the API server, both CAs and a client certificate.
    #[must_use]
    pub fn preflight_args(&self) -> Vec<OsString> {
        let mut args = vec![OsString::from("preflight")];
        for node in &self.member_nodes {
            args.extend(["--etcd".into(), node.at(CLIENT_PORT).to_string().into()]);
        }
        args.extend([
            "--apiserver".into(),
            self.apiserver_node.at(APISERVER_PORT).to_string().into(),
        ]);
        let client = &self.pki.healthcheck_client;
        for (flag, file) in [
            ("--etcd-cacert", &self.pki.etcd.pair.cert),
            ("--etcd-cert", &client.cert),
            ("--etcd-key", &client.key),
            ("--apiserver-ca", &self.pki.kubernetes.pair.cert),
        ] {
            args.extend([flag.into(), file.into()]);
        }
        args
    }

    /// Runs joinprobe on the joining node to its end.
    ///
    /// # Errors
    /// When there is no binary, or it does not end within a minute.
    pub fn run_joinprobe<A: Into<OsString>>(
        &self,
        args: impl IntoIterator<Item = A>,
    ) -> Result<Finished> {
        self.start_joinprobe(args)?.wait()
    }

    /// Starts joinprobe on the joining node.
    ///
    /// # Errors
    /// When there is no binary or it cannot be started.
    pub fn start_joinprobe<A: Into<OsString>>(
        &self,
        args: impl IntoIterator<Item = A>,
    ) -> Result<Running> {
        Running::start(
            &self.joiner.namespace,
            &binary()?,
            args.into_iter().map(Into::into),
        )
    }

    fn others(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.member_nodes
            .iter()
            .chain([&self.apiserver_node])
            .chain(&self.spare_nodes)
    }
}
