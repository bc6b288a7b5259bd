//! What the probe's tests share.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use joinprobe_lab::pki::{Authority, Leaf, Pair, Usage, Validity};
use probe_user::probe::{
    EtcdRead, Extent, Marker, NoMarker, Pacing, ProbeContext, ProbeReport, probe,
};
use probe_user::target::{Role, Target, TargetSpec};
use probe_user::tls::{CaBundle, ClientIdentity, ClientTls};
use tempfile::TempDir;
use tokio::time::Instant;

/// A target dialled at `address` under the name `host`.
pub(crate) fn named(role: Role, host: &str, address: SocketAddr) -> Target {
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
pub(crate) fn target(role: Role, address: SocketAddr) -> Target {
    named(role, &address.ip().to_string(), address)
}

/// Trusts the CA in this file and shows this certificate.
pub(crate) fn tls(ca: Option<&Path>, client: Option<&Pair>) -> Result<ClientTls> {
    let ca = ca.map(CaBundle::load).transpose()?;
    let client = client
        .map(|pair| ClientIdentity::load(&pair.cert, &pair.key))
        .transpose()?;
    Ok(ClientTls::new(ca, client))
}

/// A probe's settings, each to be overridden.
pub(crate) struct Setup<'a> {
    pub(crate) tls: ClientTls,
    pub(crate) marker: &'a dyn Marker,
    pub(crate) read: EtcdRead,
    pub(crate) pacing: Pacing<'a>,
    pub(crate) extent: Extent,
    pub(crate) patience: Duration,
}

impl Setup<'_> {
    pub(crate) fn new(tls: &ClientTls) -> Self {
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
    pub(crate) async fn probe(&self, target: &Target) -> ProbeReport {
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
pub(crate) fn run<T>(future: impl Future<Output = T>) -> Result<T> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(future))
}

/// Checks a failure: its word, and that its sentence names the target and holds these parts.
pub(crate) fn check_failure(report: &ProbeReport, target: &Target, result: &str, parts: &[&str]) {
    assert!(report.failure.is_some(), "{result} expected: {report:?}");
    let Some(failure) = &report.failure else {
        return;
    };
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

/// Without pacing and with little time: what is tested is the end of it.
pub(crate) fn hasty(tls: &ClientTls) -> Setup<'static> {
    let mut setup = Setup::new(tls);
    setup.pacing = Pacing::off();
    setup.patience = Duration::from_millis(1500);
    setup
}

/// A CA and what it signs, gone with the value.
pub(crate) struct Pki {
    folder: TempDir,
    pub(crate) ca: Authority,
}

impl Pki {
    pub(crate) fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let ca = Authority::create(&folder.path().join("ca"), "test-ca")?;
        Ok(Self { folder, ca })
    }

    pub(crate) fn issue(&self, name: &str, usage: Usage, validity: Validity) -> Result<Pair> {
        let names = ["127.0.0.1", "server.example"].map(str::to_owned).to_vec();
        self.ca.issue(
            self.folder.path(),
            name,
            &Leaf {
                common_name: name,
                organisation: None,
                names,
                usage,
                validity,
            },
        )
    }

    pub(crate) fn server(&self) -> Result<Pair> {
        self.issue("server", Usage::Server, Validity::Now)
    }

    pub(crate) fn trust(&self) -> Result<ClientTls> {
        tls(Some(&self.ca.pair.cert), None)
    }
}
