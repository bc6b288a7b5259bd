//! What the probe's tests share: a PKI, a network of their own, a real etcd.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "each test binary compiles this for itself and uses its own part"
)]

pub mod etcd;
pub mod network;
pub mod pki;

use std::net::SocketAddr;
use std::time::Duration;

use probe_user::probe::{EtcdRead, Extent, Marker, Pacing, ProbeContext, ProbeReport, probe};
use probe_user::target::{Role, Target, TargetSpec};
use probe_user::tls::ClientTls;
use tokio::time::Instant;

/// A target dialled at `address` under the name `host`.
pub fn target(role: Role, host: &str, address: SocketAddr) -> Target {
    Target {
        spec: TargetSpec {
            role,
            host: host.to_owned(),
            port: address.port(),
        },
        address: Some(address),
    }
}

/// A probe's settings, each to be overridden.
pub struct Setup<'a> {
    pub tls: ClientTls,
    pub marker: &'a dyn Marker,
    pub read: EtcdRead,
    pub pacing: Pacing<'a>,
    pub extent: Extent,
    pub patience: Duration,
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Self {
            tls: ClientTls::default(),
            marker: &probe_user::probe::NoMarker,
            read: EtcdRead::once(),
            pacing: Pacing::default(),
            extent: Extent::Full,
            patience: Duration::from_secs(10),
        }
    }
}

impl Setup<'_> {
    /// Probes, and checks that the deadline is kept.
    pub async fn probe(&self, target: &Target) -> ProbeReport {
        let deadline = Instant::now() + self.patience;
        let report = probe(
            target,
            &ProbeContext {
                marker: self.marker,
                tls: &self.tls,
                etcd_read: &self.read,
                pacing: self.pacing,
                extent: self.extent,
                dns: None,
                deadline,
            },
        )
        .await;
        let late = Instant::now().saturating_duration_since(deadline);
        assert!(late < Duration::from_millis(500), "late by {late:?}");
        report
    }
}

/// Runs a test's future on the kind of runtime joinprobe uses.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}
