//! What a real etcd says to the one read when all is not as usual.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use joinprobe_lab::etcd::{CLIENT_PORT, EtcdMember, PEER_PORT};
use joinprobe_lab::programs::command;
use joinprobe_lab::{Lab, take_turn};
use probe_user::probe::ClientCertificate;
use probe_user::target::Role;

use crate::lab::probe_one;
use crate::support::{check_failure, target, tls};

const PROGRAMS: [&str; 2] = ["etcd", "etcdctl"];

/// Runs etcdctl on the first member, as the API server's client.
fn etcdctl(lab: &Lab, words: &str) -> Result<()> {
    let node = &lab.member_nodes[0];
    let client = &lab.pki.apiserver_etcd_client;
    let output = node.namespace.output(
        command("etcdctl")
            .env("ETCDCTL_API", "3")
            .arg(format!("--endpoints=https://{}", node.at(CLIENT_PORT)))
            .arg(format!("--cacert={}", lab.pki.etcd.pair.cert.display()))
            .arg(format!("--cert={}", client.cert.display()))
            .arg(format!("--key={}", client.key.display()))
            .args(words.split_whitespace()),
    )?;
    ensure!(
        output.status.success(),
        "etcdctl {words}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

#[test]
fn without_permission() -> Result<()> {
    let Some(_turn) = take_turn(&PROGRAMS)? else {
        return Ok(());
    };
    let lab = Lab::builder().members(1).start()?;
    // A user without any role, and one that etcd does not know.
    etcdctl(&lab, "user add kube-etcd-healthcheck-client:secret")?;
    etcdctl(&lab, "user add root:secret")?;
    etcdctl(&lab, "user grant-role root root")?;
    etcdctl(&lab, "auth enable")?;
    for client in [&lab.pki.healthcheck_client, &lab.pki.apiserver_etcd_client] {
        let tls = tls(Some(&lab.pki.etcd.pair.cert), Some(client))?;
        let member = target(Role::EtcdClient, lab.member_nodes[0].at(CLIENT_PORT));
        let report = probe_one(&lab, &member, &tls)?;
        assert_eq!(report.failure, None);
        assert_eq!(report.client_certificate, ClientCertificate::Accepted);
        assert_eq!(
            report.etcd.map(|answer| answer.result),
            Some("permission denied")
        );
        assert!(report.stages.request.is_some());
    }
    Ok(())
}

#[test]
fn without_quorum() -> Result<()> {
    let Some(_turn) = take_turn(&PROGRAMS)? else {
        return Ok(());
    };
    let mut lab = Lab::builder().start()?;
    lab.etcd.members.truncate(1);
    let tls = tls(
        Some(&lab.pki.etcd.pair.cert),
        Some(&lab.pki.healthcheck_client),
    )?;
    let member = target(Role::EtcdClient, lab.member_nodes[0].at(CLIENT_PORT));
    let report = probe_one(&lab, &member, &tls)?;
    check_failure(
        &report,
        &member,
        "timed_out",
        &["within 2.0 s", "no quorum"],
    );
    assert_eq!(report.client_certificate, ClientCertificate::Accepted);
    assert_eq!(report.chunks, 16);
    Ok(())
}

#[test]
fn of_a_learner() -> Result<()> {
    let Some(_turn) = take_turn(&PROGRAMS)? else {
        return Ok(());
    };
    let lab = Lab::builder().members(1).spare_nodes(1).start()?;
    let (first, second) = (&lab.member_nodes[0], &lab.spare_nodes[0]);
    etcdctl(
        &lab,
        &format!(
            "member add {} --learner --peer-urls=https://{}",
            second.name,
            second.at(PEER_PORT)
        ),
    )?;
    let cluster = [first, second]
        .map(|node| format!("{}=https://{}", node.name, node.at(PEER_PORT)))
        .join(",");
    let folder = lab.folder().join("learner");
    let _learner = EtcdMember::start(second, &lab.pki, &folder, &cluster, "existing")?;
    let tls = tls(
        Some(&lab.pki.etcd.pair.cert),
        Some(&lab.pki.healthcheck_client),
    )?;
    let member = target(Role::EtcdClient, second.at(CLIENT_PORT));
    let patience = Instant::now() + Duration::from_secs(30);
    let report = loop {
        let report = probe_one(&lab, &member, &tls)?;
        if report.failure.is_none() || Instant::now() > patience {
            break report;
        }
    };
    assert_eq!(report.failure, None);
    assert_eq!(report.etcd.map(|answer| answer.result), Some("learner"));
    Ok(())
}
