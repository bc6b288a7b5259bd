//! The probe against a real etcd and a server that answers as an API server does, over a real delay.

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result};
use joinprobe_lab::capture::{Flow, Recording, Side};
use joinprobe_lab::etcd::{CLIENT_PORT, PEER_PORT};
use joinprobe_lab::lab::APISERVER_PORT;
use joinprobe_lab::link::DEVICE;
use joinprobe_lab::pki::Validity;
use joinprobe_lab::{Capture, Lab, attempts, on_time, take_turn};
use probe_user::probe::{
    ClientCertificate, EtcdRead, Extent, NoMarker, Pacing, ProbeContext, ProbeReport, TlsState,
    probe,
};
use probe_user::target::{Role, Target};
use probe_user::tls::ClientTls;
use tokio::time::Instant;

use crate::support::{Setup, check_failure, named, run, target, tls};

pub(crate) const PROGRAMS: [&str; 2] = ["etcd", "tcpdump"];

/// Probes from the joining node, all at once, with one permission to read.
fn probe_all(lab: &Lab, targets: &[(Target, ClientTls)]) -> Result<Vec<ProbeReport>> {
    lab.joiner.namespace.enter(|| {
        run(async {
            let read = Rc::new(EtcdRead::once());
            let tasks = tokio::task::LocalSet::new();
            let probes: Vec<_> = targets
                .iter()
                .cloned()
                .map(|(target, tls)| {
                    let read = Rc::clone(&read);
                    tasks.spawn_local(async move {
                        probe(
                            &target,
                            &ProbeContext {
                                marker: &NoMarker,
                                tls: &tls,
                                etcd_read: &read,
                                pacing: Pacing::default(),
                                extent: Extent::Full,
                                dns: None,
                                deadline: Instant::now() + Duration::from_secs(10),
                            },
                        )
                        .await
                    })
                })
                .collect();
            tasks.await;
            let mut reports = Vec::new();
            for probe in probes {
                reports.push(probe.await?);
            }
            Ok(reports)
        })
    })??
}

pub(crate) fn probe_one(lab: &Lab, target: &Target, tls: &ClientTls) -> Result<ProbeReport> {
    lab.joiner
        .namespace
        .enter(|| run(Setup::new(tls).probe(target)))?
}

/// One SYN, no RST, one FIN: what every probe must leave behind.
fn check_flow<'a>(recording: &'a Recording, target: &Target) -> Result<Flow<'a>> {
    let address = target.address.context("address")?;
    let mut flows = recording.flows_to(address);
    assert_eq!(flows.len(), 1, "connections to {address}");
    let flow = flows.remove(0);
    assert_eq!(flow.resets_by(Side::Client), 0, "{address}");
    assert_eq!(flow.resets_by(Side::Server), 0, "{address}");
    // Either may be sent again where its answer is late.
    let once = (flow.syns(), flow.fins_by(Side::Client));
    on_time(once == (1, 1), || format!("{address}: {once:?}"))?;
    Ok(flow)
}

/// The paced part: 16 pieces, each at least 20 ms after the one before and after its acknowledgement.
fn check_pacing(flow: &Flow<'_>, rtt: Duration) -> Result<()> {
    let pieces = flow.sent_by(Side::Client);
    // The SYN comes first.
    let paced = &pieces[1..=16];
    for pair in paced.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        let gap = after.sent[0].saturating_sub(before.sent[0]);
        assert!(gap >= Duration::from_millis(19), "{gap:?}");
        assert!(before.acknowledged.is_some_and(|at| at <= after.sent[0]));
        let measured = before.rtt();
        assert!(
            measured.is_none_or(|measured| measured >= rtt),
            "{measured:?}"
        );
        late(measured, 2 * rtt)?;
    }
    Ok(())
}

/// Holds what was measured to less than this; nothing was where it was sent again.
fn late(measured: Option<Duration>, limit: Duration) -> Result<()> {
    on_time(measured.is_some_and(|measured| measured < limit), || {
        format!("{measured:?} of {limit:?}")
    })
}

#[test]
fn one_connection_one_read_no_trace() -> Result<()> {
    let Some(_turn) = take_turn(&PROGRAMS)? else {
        return Ok(());
    };
    let rtt = Duration::from_millis(10);
    let lab = Lab::builder().start()?;
    lab.set_rtt(rtt);
    let etcd = tls(
        Some(&lab.pki.etcd.pair.cert),
        Some(&lab.pki.healthcheck_client),
    )?;
    let api = tls(Some(&lab.pki.kubernetes.pair.cert), None)?;
    let mut targets: Vec<_> = lab
        .member_nodes
        .iter()
        .map(|node| (target(Role::EtcdClient, node.at(CLIENT_PORT)), etcd.clone()))
        .collect();
    targets.push((
        target(Role::EtcdPeer, lab.member_nodes[0].at_v6(PEER_PORT)),
        etcd,
    ));
    targets.push((
        target(Role::ApiServer, lab.apiserver_node.at(APISERVER_PORT)),
        api,
    ));

    attempts(3, || one_probe_each(&lab, &targets, rtt))
}

fn one_probe_each(lab: &Lab, targets: &[(Target, ClientTls)], rtt: Duration) -> Result<()> {
    let before = metrics(lab)?;
    let asked_before = lab.apiserver.requests().len();
    let capture = Capture::start(&lab.joiner.namespace, DEVICE)?;
    let reports = probe_all(lab, targets)?;
    let recording = capture.stop()?;
    let after = metrics(lab)?;
    assert_eq!(after.ranges - before.ranges, 1);
    assert_eq!(after.others, before.others);
    assert_eq!(after.revision, before.revision);

    for ((target, _), report) in targets.iter().zip(&reports) {
        assert_eq!(report.failure, None, "{target}");
        assert_eq!(report.tls, TlsState::Verified, "{target}");
        assert_eq!(report.chunks, 16, "{target}");
        let flow = check_flow(&recording, target)?;
        check_pacing(&flow, rtt)?;
        let (tcp, handshake) = (report.stages.tcp, report.stages.tls);
        assert!(tcp >= Some(rtt) && handshake >= Some(rtt), "{report:?}");
        late(tcp, 2 * rtt)?;
        late(handshake, 10 * rtt)?;
    }
    let answers: Vec<_> = reports
        .iter()
        .filter_map(|report| report.etcd.as_ref())
        .collect();
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].result, "ok");
    assert!(answers[0].revision.is_some_and(|revision| revision > 0));
    assert!(answers[0].member_id.is_some_and(|id| id != 0));
    let read = reports
        .iter()
        .find(|report| report.etcd.is_some())
        .context("read")?;
    let request = read.stages.request;
    assert!(request >= Some(rtt), "{request:?}");
    late(request, 20 * rtt)?;
    for report in &reports[..4] {
        assert_eq!(report.client_certificate, ClientCertificate::Accepted);
    }
    assert_eq!(reports[4].http_status, Some(200));
    let requests = lab.apiserver.requests().split_off(asked_before);
    assert_eq!(requests.len(), 1);
    assert_eq!(
        (requests[0].path.as_str(), requests[0].authorized),
        ("/readyz", false)
    );
    Ok(())
}

#[derive(Debug, PartialEq)]
struct Counted {
    ranges: u64,
    /// Every other call, whichever.
    others: u64,
    revision: Option<u64>,
}

fn metrics(lab: &Lab) -> Result<Counted> {
    let mut counted = Counted {
        ranges: 0,
        others: 0,
        revision: None,
    };
    for member in &lab.etcd.members {
        let metrics = member.metrics()?;
        for (method, count) in metrics.calls() {
            if method == "Range" {
                counted.ranges += count;
            } else {
                counted.others += count;
            }
        }
        counted.revision = counted.revision.max(metrics.revision());
    }
    Ok(counted)
}

#[test]
fn what_certificates_decide() -> Result<()> {
    let Some(_turn) = take_turn(&PROGRAMS)? else {
        return Ok(());
    };
    let lab = Lab::builder().members(1).start()?;
    lab.set_rtt(Duration::from_millis(2));
    let node = &lab.member_nodes[0];
    let (foreign_ca, foreign) = lab.pki.foreign()?;
    let expired = lab.pki.etcd_client("expired", Validity::Expired)?;
    let ca: &Path = &lab.pki.etcd.pair.cert;
    let good = &lab.pki.healthcheck_client;
    let client = target(Role::EtcdClient, node.at(CLIENT_PORT));
    let peer = target(Role::EtcdPeer, node.at(PEER_PORT));
    let capture = Capture::start(&lab.joiner.namespace, DEVICE)?;

    for target in [&client, &peer] {
        let report = probe_one(&lab, target, &tls(Some(ca), None)?)?;
        assert_eq!(report.failure, None);
        assert_eq!(report.tls, TlsState::Verified);
        assert_eq!(report.client_certificate, ClientCertificate::NotGiven);
        assert!(report.stages.tls.is_some());
        assert_eq!((report.stages.request, report.etcd), (None, None));
    }
    let report = probe_one(&lab, &client, &tls(None, Some(good))?)?;
    assert_eq!(report.failure, None);
    assert_eq!(report.tls, TlsState::Unverified);
    assert_eq!(report.client_certificate, ClientCertificate::Withheld);

    for refused in [&foreign, &expired] {
        for target in [&client, &peer] {
            let report = probe_one(&lab, target, &tls(Some(ca), Some(refused))?)?;
            println!("{:?}", report.client_certificate);
            assert_eq!(report.failure, None);
            assert!(matches!(
                report.client_certificate,
                ClientCertificate::Rejected(_)
            ));
            assert_eq!(report.chunks, 16);
            assert_eq!(report.etcd, None);
        }
    }
    let wrong_ca = tls(Some(&foreign_ca.pair.cert), Some(good))?;
    let report = probe_one(&lab, &client, &wrong_ca)?;
    check_failure(&report, &client, "untrusted", &["etcd-ca", "foreign"]);
    assert_eq!(report.client_certificate, ClientCertificate::NotReached);
    assert_eq!(report.chunks, 16);

    let elsewhere = named(Role::EtcdClient, "etcd.example", node.at(CLIENT_PORT));
    let report = probe_one(&lab, &elsewhere, &tls(Some(ca), Some(good))?)?;
    check_failure(
        &report,
        &elsewhere,
        "name_mismatch",
        &["cp-1", "10.1.0.1", "etcd.example"],
    );

    let by_name = named(Role::EtcdClient, "cp-1", node.at_v6(CLIENT_PORT));
    let report = probe_one(&lab, &by_name, &tls(Some(ca), Some(good))?)?;
    assert_eq!(report.failure, None);
    assert!(report.etcd.is_some());

    for flow in capture.stop()?.flows() {
        assert_eq!((flow.syns(), flow.resets_by(Side::Client)), (1, 0));
    }
    Ok(())
}
