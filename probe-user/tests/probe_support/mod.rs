//! What the probe's tests share.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary compiles this for itself and uses its own part"
)]

pub mod server;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use joinprobe_lab::pki::Pair;
use probe_user::probe::{
    EtcdRead, Extent, Marker, NoMarker, Pacing, ProbeContext, ProbeReport, probe,
};
use probe_user::target::{Role, Target, TargetSpec};
use probe_user::tls::{CaBundle, ClientIdentity, ClientTls};
use tokio::time::Instant;

/// A target dialled at `address` under the name `host`.
pub fn named(role: Role, host: &str, address: SocketAddr) -> Target {
    Target {
        spec: TargetSpec {
            role,
            host: host.to_owned(),
            port: address.port(),
        },
        address: Some(address),
    }
}

/// A target dialled by its address.
pub fn target(role: Role, address: SocketAddr) -> Target {
    named(role, &address.ip().to_string(), address)
}

/// Trusts the CA in this file and shows this certificate.
pub fn tls(ca: Option<&Path>, client: Option<&Pair>) -> Result<ClientTls> {
    let ca = ca.map(CaBundle::load).transpose()?;
    let client = client
        .map(|pair| ClientIdentity::load(&pair.cert, &pair.key))
        .transpose()?;
    Ok(ClientTls::new(ca, client))
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

impl Setup<'_> {
    pub fn new(tls: &ClientTls) -> Self {
        Self {
            tls: tls.clone(),
            marker: &NoMarker,
            read: EtcdRead::once(),
            pacing: Pacing::default(),
            extent: Extent::Full,
            patience: Duration::from_secs(10),
        }
    }

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
pub fn run<T>(future: impl Future<Output = T>) -> Result<T> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(future))
}

/// Checks a failure: its word, and that its sentence names the target and holds these parts.
pub fn check_failure(report: &ProbeReport, target: &Target, result: &str, parts: &[&str]) {
    let Some(failure) = &report.failure else {
        panic!("no failure, {result} expected: {report:?}");
    };
    println!("{}: {}", failure.result, failure.text);
    assert_eq!(failure.result, result, "{}", failure.text);
    assert!(
        failure.text.contains(&target.to_string()),
        "{}",
        failure.text
    );
    for part in parts {
        assert!(failure.text.contains(part), "`{part}` in: {}", failure.text);
    }
}
