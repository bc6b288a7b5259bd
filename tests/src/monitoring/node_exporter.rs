//! A real `node_exporter` with nothing but its textfile collector.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::http::{free_port, get};

/// A running `node_exporter`. Dropping it kills the process.
#[derive(Debug)]
pub struct NodeExporter {
    address: SocketAddr,
    process: Child,
}

impl NodeExporter {
    /// Starts one that reads the `.prom` files of `folder`.
    ///
    /// # Errors
    /// When it cannot be started or does not answer within 30 s.
    pub fn start(folder: &Path) -> Result<Self> {
        let address = free_port()?;
        let process = Command::new("prometheus-node-exporter")
            .arg("--collector.disable-defaults")
            .arg("--collector.textfile")
            .arg(format!(
                "--collector.textfile.directory={}",
                folder.display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start prometheus-node-exporter")?;
        let exporter = Self { address, process };
        let deadline = Instant::now() + Duration::from_secs(30);
        while exporter.metrics().is_err() {
            ensure!(Instant::now() < deadline, "node_exporter does not answer");
            thread::sleep(Duration::from_millis(50));
        }
        Ok(exporter)
    }

    /// Its page.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn metrics(&self) -> Result<String> {
        get(self.address, "/metrics")
    }
}

impl Drop for NodeExporter {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
