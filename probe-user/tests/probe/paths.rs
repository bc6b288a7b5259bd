//! Hosts that are off, segments that are lost, distances that are long, and an etcd without TLS.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::Result;
use joinprobe_lab::etcd::{CLIENT_PORT, PEER_PORT};
use joinprobe_lab::link::DropRule;
use joinprobe_lab::programs::command;
use joinprobe_lab::{Lab, take_turn};
use probe_user::probe::{Pacing, Stage};
use probe_user::target::Role;

use crate::lab::{PROGRAMS, probe_one};
use crate::support::{Setup, check_failure, run, target, tls};

#[test]
fn dead_closed_and_unrouted() -> Result<()> {
    let Some(_turn) = take_turn(&PROGRAMS)? else {
        return Ok(());
    };
    let lab = Lab::builder().members(1).spare_nodes(1).start()?;
    let ca = tls(
        Some(&lab.pki.etcd.pair.cert),
        Some(&lab.pki.healthcheck_client),
    )?;
    let nobody = target(Role::EtcdClient, lab.spare_nodes[0].at(CLIENT_PORT));
    let report = probe_one(&lab, &nobody, &ca)?;
    check_failure(&report, &nobody, "refused", &["no etcd listens"]);

    let unrouted = target(Role::EtcdClient, "192.0.2.1:2379".parse()?);
    let report = probe_one(&lab, &unrouted, &ca)?;
    check_failure(&report, &unrouted, "unreachable", &["route"]);

    lab.link.set_dead(lab.spare_nodes[0].v4.into(), true);
    let report = lab.joiner.namespace.enter(|| {
        let mut setup = Setup::new(&ca);
        setup.patience = Duration::from_secs(2);
        run(setup.probe(&nobody))
    })??;
    check_failure(
        &report,
        &nobody,
        "timed_out",
        &["did not answer a SYN", "2379"],
    );
    assert_eq!(
        report.failure.map(|failure| failure.stage),
        Some(Stage::Tcp)
    );

    Ok(())
}

#[test]
fn lossy_and_far() -> Result<()> {
    let Some(_turn) = take_turn(&PROGRAMS)? else {
        return Ok(());
    };
    let lab = Lab::builder().members(1).start()?;
    let node = &lab.member_nodes[0];
    let ca = tls(
        Some(&lab.pki.etcd.pair.cert),
        Some(&lab.pki.healthcheck_client),
    )?;
    let member = target(Role::EtcdClient, node.at(CLIENT_PORT));
    lab.set_rtt(Duration::from_millis(5));

    // The kernel sends a lost SYN again after a second; the stage shows it.
    lab.link.drop_segments(DropRule::syn(1..=1));
    let report = probe_one(&lab, &member, &ca)?;
    assert_eq!(report.failure, None);
    assert_eq!(report.chunks, 16);
    assert!(report.stages.tcp >= Some(Duration::from_secs(1)));
    lab.link.clear_rules();

    // One piece lost: the next waits for its retransmission.
    lab.link
        .drop_segments(DropRule::data_to(CLIENT_PORT, 3..=3));
    let report = probe_one(&lab, &member, &ca)?;
    assert_eq!((report.failure, report.chunks), (None, 16));
    lab.link.clear_rules();

    lab.link
        .drop_segments(DropRule::data_to(CLIENT_PORT, 3..=999));
    let report = probe_one(&lab, &member, &ca)?;
    check_failure(
        &report,
        &member,
        "timed_out",
        &["acknowledged nothing", "after 3 pieces"],
    );
    lab.link.clear_rules();

    // The far end of what is judged at all: everything still fits into the ten seconds.
    lab.set_rtt(Duration::from_millis(300));
    let member = target(Role::EtcdClient, node.at(CLIENT_PORT));
    let report = probe_one(&lab, &member, &ca)?;
    assert_eq!(report.failure, None);
    assert_eq!(report.chunks, 16);
    assert!(report.etcd.is_some());

    lab.set_rtt(Duration::from_millis(900));
    let report = probe_one(&lab, &member, &ca)?;
    println!(
        "{} chunks in 900 ms steps, {:?}",
        report.chunks, report.failure
    );
    assert!(report.chunks >= Pacing::MIN_CHUNKS);
    Ok(())
}

#[test]
fn plain_text_etcd() -> Result<()> {
    let Some(_turn) = take_turn(&PROGRAMS)? else {
        return Ok(());
    };
    let lab = Lab::builder().members(1).spare_nodes(1).start()?;
    let node = &lab.spare_nodes[0];
    let (client, peer) = (node.at(CLIENT_PORT), node.at(PEER_PORT));
    let child = node.namespace.spawn(
        command("etcd")
            .arg("--name=plain")
            .arg(format!(
                "--data-dir={}",
                lab.folder().join("plain").display()
            ))
            .arg(format!("--listen-client-urls=http://{client}"))
            .arg(format!("--advertise-client-urls=http://{client}"))
            .arg(format!("--listen-peer-urls=http://{peer}"))
            .arg(format!("--initial-advertise-peer-urls=http://{peer}"))
            .arg(format!("--initial-cluster=plain=http://{peer}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null()),
    )?;
    let _ended = Ended(child);
    let tls = tls(Some(&lab.pki.etcd.pair.cert), None)?;
    for target in [
        target(Role::EtcdClient, client),
        target(Role::EtcdPeer, peer),
    ] {
        let patience = Instant::now() + Duration::from_secs(20);
        let report = loop {
            let report = probe_one(&lab, &target, &tls)?;
            let refused = report
                .failure
                .as_ref()
                .is_some_and(|failure| failure.result == "refused");
            if !refused || Instant::now() > patience {
                break report;
            }
        };
        // It stops reading at the first line feed, which the random part of the first piece may hold.
        let result = if report.chunks > 1 { "no_tls" } else { "reset" };
        check_failure(&report, &target, result, &["http"]);
    }
    Ok(())
}

/// Killed and awaited when dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
