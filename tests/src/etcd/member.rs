//! One etcd process.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, Result, bail, ensure};

use super::disk::Disk;
use super::metrics::Metrics;
use crate::lab::Node;
use crate::pki::ClusterPki;

/// Clients connect here.
pub const CLIENT_PORT: u16 = 2379;
/// Members connect here.
pub const PEER_PORT: u16 = 2380;
/// Metrics and health in plain HTTP, on the member's own loopback.
pub const METRICS_PORT: u16 = 2381;

/// A running etcd. Dropping it kills the process.
#[derive(Debug)]
pub struct EtcdMember {
    /// Where it runs.
    pub node: Arc<Node>,
    /// Its data and its log.
    folder: PathBuf,
    process: Child,
}

impl EtcdMember {
    /// Starts a member with kubeadm's flags. `initial_cluster` lists all members as `name=url` with commas;
    /// `state` is `new` or `existing`.
    ///
    /// # Errors
    /// When its certificates or folder cannot be written or etcd cannot be started.
    pub fn start(
        node: &Arc<Node>,
        pki: &ClusterPki,
        folder: &Path,
        initial_cluster: &str,
        state: &str,
    ) -> Result<Self> {
        Self::start_on(Disk::default(), node, pki, folder, initial_cluster, state)
    }

    /// As [`EtcdMember::start`], on another disk.
    ///
    /// # Errors
    /// Those of [`EtcdMember::start`].
    pub fn start_on(
        disk: Disk,
        node: &Arc<Node>,
        pki: &ClusterPki,
        folder: &Path,
        initial_cluster: &str,
        state: &str,
    ) -> Result<Self> {
        let mut etcd = Self::command_on(disk, node, pki, folder, initial_cluster, state)?;
        let folder = folder.join(&node.name);
        let log = File::create(folder.join("log"))?;
        // In a group of its own, so that Ctrl-C on a terminal does not end it before what uses it.
        etcd.process_group(0);
        let process = node
            .namespace
            .spawn(etcd.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log))?;
        Ok(Self {
            node: Arc::clone(node),
            folder,
            process,
        })
    }

    /// What [`EtcdMember::start`] starts, to be started by others.
    ///
    /// # Errors
    /// When its certificates or folder cannot be written.
    pub fn command(
        node: &Node,
        pki: &ClusterPki,
        folder: &Path,
        initial_cluster: &str,
        state: &str,
    ) -> Result<Command> {
        Self::command_on(Disk::default(), node, pki, folder, initial_cluster, state)
    }

    fn command_on(
        disk: Disk,
        node: &Node,
        pki: &ClusterPki,
        folder: &Path,
        initial_cluster: &str,
        state: &str,
    ) -> Result<Command> {
        let folder = folder.join(&node.name);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let identity = node.identity();
        let (server, peer) = (pki.etcd_server(&identity)?, pki.etcd_peer(&identity)?);
        let urls = |port: u16| format!("https://{},https://{}", node.at(port), node.at_v6(port));
        let mut etcd = disk.command("etcd");
        let mut flag = |name: &str, value: &dyn AsRef<std::ffi::OsStr>| {
            let mut word = std::ffi::OsString::from(format!("--{name}="));
            word.push(value.as_ref());
            etcd.arg(word);
        };
        flag("name", &node.name);
        flag("data-dir", &folder.join("data"));
        flag(
            "listen-client-urls",
            &format!("https://127.0.0.1:{CLIENT_PORT},{}", urls(CLIENT_PORT)),
        );
        flag(
            "advertise-client-urls",
            &format!("https://{}", node.at(CLIENT_PORT)),
        );
        flag("listen-peer-urls", &urls(PEER_PORT));
        flag(
            "initial-advertise-peer-urls",
            &format!("https://{}", node.at(PEER_PORT)),
        );
        flag(
            "listen-metrics-urls",
            &format!("http://127.0.0.1:{METRICS_PORT}"),
        );
        flag("initial-cluster", &initial_cluster);
        flag("initial-cluster-state", &state);
        flag("client-cert-auth", &"true");
        flag("trusted-ca-file", &pki.etcd.pair.cert);
        flag("cert-file", &server.cert);
        flag("key-file", &server.key);
        flag("peer-client-cert-auth", &"true");
        flag("peer-trusted-ca-file", &pki.etcd.pair.cert);
        flag("peer-cert-file", &peer.cert);
        flag("peer-key-file", &peer.key);
        flag("logger", &"zap");
        flag("log-outputs", &"stderr");
        Ok(etcd)
    }

    /// Waits until it says that it is healthy: it has a leader and can read linearizably.
    ///
    /// # Errors
    /// When it ends, or is not healthy in time; with the end of its log.
    pub fn wait_healthy(&mut self, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        loop {
            if self
                .get("/health")
                .is_ok_and(|answer| answer.contains("\"true\""))
            {
                return Ok(());
            }
            if let Some(status) = self.process.try_wait()? {
                bail!(
                    "etcd {} ended ({status}): {}",
                    self.node.name,
                    self.log_tail()
                );
            }
            ensure!(
                Instant::now() < deadline,
                "etcd {} is not healthy after {patience:?}: {}",
                self.node.name,
                self.log_tail()
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Reads its counters.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn metrics(&self) -> Result<Metrics> {
        Ok(Metrics::parse(&self.get("/metrics")?))
    }

    /// What it logged so far, one JSON object a line.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn log(&self) -> Result<String> {
        fs::read_to_string(self.folder.join("log"))
            .with_context(|| format!("cannot read the log of {}", self.node.name))
    }

    /// The process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    fn get(&self, path: &str) -> Result<String> {
        let address: SocketAddr = (Ipv4Addr::LOCALHOST, METRICS_PORT).into();
        let mut stream = self
            .node
            .namespace
            .enter(|| TcpStream::connect(address))??;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        // HTTP/1.0: the body ends with the connection.
        stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (_head, body) = answer.split_once("\r\n\r\n").context("no HTTP answer")?;
        Ok(body.to_owned())
    }

    fn log_tail(&self) -> String {
        let log = self.log().unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines
            .get(lines.len().saturating_sub(5)..)
            .unwrap_or_default()
            .join("\n")
    }
}

impl Drop for EtcdMember {
    fn drop(&mut self) {
        // Nobody needs its data: no reason to wait for an orderly end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
