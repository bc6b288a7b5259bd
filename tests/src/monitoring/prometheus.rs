//! A real Prometheus server.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

use super::http::{escaped, free_port, get};
use crate::scratch_dir;

/// A running Prometheus that scrapes one target every second. Dropping it kills the process.
#[derive(Debug)]
pub struct Prometheus {
    address: SocketAddr,
    process: Child,
    folder: TempDir,
}

/// One series of an instant query.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its value.
    pub value: f64,
}

impl Prometheus {
    /// Starts a server that scrapes `target`; `native` lets it ask for native histograms.
    ///
    /// # Errors
    /// When it cannot be started or is not ready within 30 s; with its log.
    pub fn start(target: SocketAddr, native: bool) -> Result<Self> {
        let folder = scratch_dir()?;
        let address = free_port()?;
        let config = folder.path().join("prometheus.yml");
        fs::write(
            &config,
            format!(
                "global: {{scrape_interval: 1s}}\n\
                 scrape_configs: [{{job_name: joinprobe, static_configs: [{{targets: ['{target}']}}]}}]\n"
            ),
        )?;
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"));
        if native {
            command.arg("--enable-feature=native-histograms");
        }
        let process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(folder.path().join("log"))?)
            .spawn()
            .context("cannot start prometheus")?;
        let mut server = Self {
            address,
            process,
            folder,
        };
        server.wait("ready", |server| get(server.address, "/-/ready").is_ok())?;
        Ok(server)
    }

    /// The result of an instant query.
    ///
    /// # Errors
    /// When it is refused.
    pub fn query(&self, expression: &str) -> Result<Vec<Sample>> {
        let path = format!("/api/v1/query?query={}", escaped(expression));
        let answer: Value = serde_json::from_str(&get(self.address, &path)?)?;
        let results = answer["data"]["result"]
            .as_array()
            .context("no result in the answer")?;
        results
            .iter()
            .map(|result| {
                let value = result["value"][1].as_str().context("no value")?;
                let labels = result["metric"].as_object().context("no labels")?;
                Ok(Sample {
                    labels: labels
                        .iter()
                        .map(|(key, value)| {
                            (key.clone(), value.as_str().unwrap_or_default().to_owned())
                        })
                        .collect(),
                    value: value.parse()?,
                })
            })
            .collect()
    }

    /// Waits until `expression` yields something and returns it.
    ///
    /// # Errors
    /// When it does not within 30 s; with what Prometheus says about its target and its log.
    pub fn wait_for(&mut self, expression: &str) -> Result<Vec<Sample>> {
        self.wait(expression, |server| {
            server
                .query(expression)
                .is_ok_and(|samples| !samples.is_empty())
        })?;
        self.query(expression)
    }

    fn wait(&mut self, what: &str, done: impl Fn(&Self) -> bool) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !done(self) {
            if let Some(status) = self.process.try_wait()? {
                bail!("prometheus ended ({status}): {}", self.log());
            }
            ensure!(
                Instant::now() < deadline,
                "prometheus: no {what}; targets: {}; log: {}",
                get(self.address, "/api/v1/targets").unwrap_or_default(),
                self.log()
            );
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
