//! A real etcd member.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::pki::{Pair, Pki};

pub struct Etcd {
    child: Child,
    pub client: SocketAddr,
    pub peer: SocketAddr,
    pub metrics: SocketAddr,
    pub log: std::path::PathBuf,
}

/// How etcd is to serve.
#[derive(Clone, Copy, Default)]
pub struct Choices {
    /// Plain http instead of TLS.
    pub plain: bool,
    /// Accept clients without a certificate.
    pub anyone: bool,
}

fn free() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap()
}

impl Etcd {
    /// Starts a single member and waits until it is healthy.
    pub fn start(pki: &Pki, server: &Pair, choices: Choices) -> Self {
        let (client, peer, metrics) = (free(), free(), free());
        let scheme = if choices.plain { "http" } else { "https" };
        let log = pki.dir.0.join(format!("etcd-{}.log", client.port()));
        let output = File::create(&log).unwrap();
        let mut command = Command::new("etcd");
        command
            .args(["--name", "m"])
            .arg("--data-dir")
            .arg(pki.dir.0.join(format!("data-{}", client.port())))
            .args([format!("--listen-client-urls={scheme}://{client}")])
            .args([format!("--advertise-client-urls={scheme}://{client}")])
            .args([format!("--listen-peer-urls={scheme}://{peer}")])
            .args([format!("--initial-advertise-peer-urls={scheme}://{peer}")])
            .args([format!("--initial-cluster=m={scheme}://{peer}")])
            .args([format!("--listen-metrics-urls=http://{metrics}")])
            .env("ETCD_UNSUPPORTED_ARCH", std::env::consts::ARCH)
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .stdin(Stdio::null());
        if !choices.plain {
            for prefix in ["", "peer-"] {
                command
                    .arg(format!(
                        "--{prefix}cert-file={}",
                        server.certificate.display()
                    ))
                    .arg(format!("--{prefix}key-file={}", server.key.display()))
                    .arg(format!(
                        "--{prefix}trusted-ca-file={}",
                        pki.ca_file.display()
                    ));
            }
            if !choices.anyone {
                command.args(["--client-cert-auth", "--peer-client-cert-auth"]);
            }
        }
        let child = command
            .spawn()
            .expect("etcd (package etcd-server) is needed");
        let etcd = Self {
            child,
            client,
            peer,
            metrics,
            log,
        };
        etcd.wait();
        etcd
    }

    fn wait(&self) {
        let patience = Instant::now() + Duration::from_secs(30);
        while !self.get("/health").contains("\"true\"") {
            assert!(
                Instant::now() < patience,
                "etcd did not start: {}",
                std::fs::read_to_string(&self.log).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// A page of the metrics listener; empty when it does not answer.
    pub fn get(&self, path: &str) -> String {
        use std::io::{Read, Write};
        let fetch = || {
            let mut stream = std::net::TcpStream::connect(self.metrics).ok()?;
            write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
            let mut page = String::new();
            stream.read_to_string(&mut page).ok()?;
            Some(page)
        };
        fetch().unwrap_or_default()
    }

    /// The sum of a metric over its labels that contain `labels`.
    pub fn metric(&self, name: &str, labels: &str) -> f64 {
        self.get("/metrics")
            .lines()
            .filter(|line| line.starts_with(name) && line.contains(labels))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
