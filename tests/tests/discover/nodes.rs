//! Each kind of node finds what it needs.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};
use joinprobe_lab::etcd::{CLIENT_PORT, PEER_PORT};
use joinprobe_lab::lab::{APISERVER_PORT, Finished};
use joinprobe_lab::{Lab, take_turn};

use super::cluster_info::{self, PODS};
use super::node::{JOIN, Node, apiserver, etcd_manifest, kubeconfig};

fn code(finished: &Finished, expected: i32) -> Result<()> {
    ensure!(
        finished.code == Some(expected),
        "expected exit {expected}: {finished:?}"
    );
    Ok(())
}

fn found_in(finished: &Finished, address: std::net::SocketAddr) -> Result<String> {
    let report = finished.report()?;
    let target = report.target(address)?;
    Ok(target.text("/found_in/0").to_owned())
}

fn says(finished: &Finished, id: &str, part: &str) -> Result<()> {
    let report = finished.report()?;
    let findings = report.0["findings"].as_array().context("no findings")?;
    let found = findings.iter().any(|finding| {
        finding["id"] == id
            && finding["text"]
                .as_str()
                .is_some_and(|text| text.contains(part))
    });
    ensure!(found, "no {id} that says {part:?}: {findings:?}");
    Ok(())
}

#[test]
fn cluster_api_node_before_the_join() -> Result<()> {
    let Some(_turn) = take_turn(&["etcd"])? else {
        return Ok(());
    };
    let lab = Lab::builder().start()?;
    lab.apiserver
        .answer_known(PODS, cluster_info::etcd_pods(&lab));
    let node = Node::new(&lab, "capi")?
        .with_authorities()?
        .with_join_config(true)?;
    let before = node.files()?;
    let server = lab.apiserver_node.at(APISERVER_PORT);

    let finished = node.preflight(&[])?;
    code(&finished, 5)?;
    let report = finished.report()?;
    assert_eq!(report.target(server)?.text("/probe/tls"), "verified");
    assert!(found_in(&finished, server)?.contains(JOIN));
    says(&finished, "apiserver-trust", "matches the hash pinned in")?;
    says(&finished, "etcd-not-measured", "etcd not measured")?;
    // The CA on disk matches the hash: no further connection was needed to verify by it.
    assert_eq!(lab.apiserver.requests().len(), 1);

    let finished = node.preflight(&["--discover-etcd", "--etcd-mint-client-cert"])?;
    code(&finished, 0)?;
    let report = finished.report()?;
    assert_eq!(report.targets().len(), 4);
    for member in &lab.member_nodes {
        let target = report.target(member.at(CLIENT_PORT))?;
        assert_eq!(target.verdict(), "pass", "{:?}", target.0);
        assert!(
            target
                .text("/found_in/0")
                .starts_with("pod kube-system/etcd-")
        );
        assert_eq!(target.text("/probe/client_certificate"), "accepted");
    }
    assert_eq!(report.text("/etcd_probe/result"), "ok");
    says(&finished, "etcd-minted-certificate", "nothing was written")?;
    says(&finished, "discover-etcd", "lists 3 etcd pods")?;
    let requests = lab.apiserver.requests();
    let listing = requests
        .iter()
        .find(|request| request.path.starts_with(PODS))
        .context("the pods were not listed")?;
    assert_eq!(
        listing.client.as_deref(),
        Some("O=joinprobe, CN=system:kube-scheduler")
    );
    assert!(requests.iter().all(|request| !request.authorized));
    assert_eq!(node.files()?, before, "a file was written");
    Ok(())
}

#[test]
fn plain_node_before_the_join() -> Result<()> {
    let Some(_turn) = take_turn(&["etcd"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(1).start()?;
    lab.apiserver.answer(
        cluster_info::PATH,
        cluster_info::cluster_info(&lab.pki.kubernetes.pair.cert)?,
    );
    let node = Node::new(&lab, "plain")?.with_join_config(true)?;
    let finished = node.preflight(&[])?;
    code(&finished, 5)?;
    says(&finished, "apiserver-trust", "in its cluster-info")?;
    let report = finished.report()?;
    let server = report.target(lab.apiserver_node.at(APISERVER_PORT))?;
    assert_eq!(server.text("/probe/tls"), "verified");
    let requests = lab.apiserver.requests();
    let paths: Vec<_> = requests
        .iter()
        .map(|request| request.path.as_str())
        .collect();
    assert_eq!(paths, [cluster_info::PATH, "/readyz"]);
    assert!(requests.iter().all(|request| !request.authorized));
    Ok(())
}

#[test]
fn worker_needs_no_etcd() -> Result<()> {
    let Some(_turn) = take_turn(&["etcd"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(1).start()?;
    lab.apiserver.answer(
        cluster_info::PATH,
        cluster_info::cluster_info(&lab.pki.kubernetes.pair.cert)?,
    );
    let node = Node::new(&lab, "worker")?.with_join_config(false)?;
    let finished = node.preflight(&[])?;
    code(&finished, 0)?;
    assert_eq!(finished.report()?.verdict(), "pass");
    says(&finished, "node", "a joining worker")
}

#[test]
fn running_control_plane_node() -> Result<()> {
    let Some(_turn) = take_turn(&["etcd"])? else {
        return Ok(());
    };
    let lab = Lab::builder().start()?;
    let own = lab.member_nodes[0].v4.to_string();
    // The second is still a member, the third address was one once.
    let peers = [
        lab.member_nodes[1].at(PEER_PORT).to_string(),
        "10.1.0.77:2380".to_owned(),
    ];
    let node = Node::new(&lab, "running")?
        .with_authorities()?
        .with_client_certificate()?
        .put(
            "etc/kubernetes/admin.conf",
            kubeconfig(&lab, "{token: t0k3n}")?,
        )?
        .put(
            "etc/kubernetes/manifests/etcd.yaml",
            etcd_manifest(&own, &peers),
        )?;
    let finished = node.preflight(&["--timeout", "5s"])?;
    code(&finished, 0)?;
    let report = finished.report()?;
    let gone = report.target("10.1.0.77:2380".parse()?)?;
    assert_eq!(gone.verdict(), "warn", "a member of long ago is no failure");
    let member = report.target(lab.member_nodes[0].at(CLIENT_PORT))?;
    assert!(
        member
            .text("/found_in/0")
            .contains("etcd.yaml (--advertise-client-urls)")
    );
    assert_eq!(report.text("/etcd_probe/result"), "ok");
    let limits = finished.stdout.contains("--heartbeat-interval");
    assert!(limits, "the limits' source is the manifest: {finished:?}");

    let finished = node.preflight(&["--discover-members"])?;
    code(&finished, 0)?;
    says(&finished, "discover-members", "lists 3 etcd members")?;
    let report = finished.report()?;
    for member in &lab.member_nodes {
        report.target(member.at(CLIENT_PORT))?;
        report.target(member.at(PEER_PORT))?;
    }
    assert!(report.target("10.1.0.77:2380".parse()?).is_err());
    Ok(())
}

#[test]
fn external_etcd() -> Result<()> {
    let Some(_turn) = take_turn(&["etcd"])? else {
        return Ok(());
    };
    let lab = Lab::builder().start()?;
    let mut endpoints = String::new();
    for node in &lab.member_nodes {
        writeln!(endpoints, "    - https://{}", node.at(CLIENT_PORT))?;
    }
    let pki = "/etc/kubernetes/pki/etcd";
    let cluster = format!(
        "---\napiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\ncontrolPlaneEndpoint: {}\netcd:\n  \
         external:\n    endpoints:\n{endpoints}    caFile: {pki}/ca.crt\n    certFile: {pki}/healthcheck-client.crt\n    \
         keyFile: {pki}/healthcheck-client.key\n",
        apiserver(&lab)
    );
    let join = super::node::join_config(&lab, true)? + &cluster;
    let node = Node::new(&lab, "external")?
        .with_client_certificate()?
        .put("root/join.yaml", join)?;
    let finished = node.preflight(&["--join-config", "/root/join.yaml"])?;
    code(&finished, 0)?;
    let report = finished.report()?;
    assert_eq!(report.targets().len(), 4);
    assert_eq!(report.text("/etcd_probe/result"), "ok");
    let origin = found_in(&finished, lab.member_nodes[2].at(CLIENT_PORT))?;
    assert!(
        origin.contains("join.yaml (etcd.external.endpoints[2])"),
        "{origin}"
    );
    Ok(())
}
