//! An API server that is not the one that was meant.

use anyhow::{Result, ensure};
use joinprobe_lab::apiserver::ApiServer;
use joinprobe_lab::lab::APISERVER_PORT;
use joinprobe_lab::pki::{Leaf, Usage, Validity};
use joinprobe_lab::{Lab, take_turn};

use super::cluster_info;
use super::node::{Node, TOKEN_SECRET, apiserver};

#[test]
fn man_in_the_middle_is_refused_and_receives_nothing() -> Result<()> {
    let Some(_turn) = take_turn(&["etcd"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(1).spare_nodes(1).start()?;
    let (false_ca, _) = lab.pki.foreign()?;
    let host = &lab.spare_nodes[0];
    let address = host.at(APISERVER_PORT);
    let certificate = false_ca.issue(
        &lab.folder().join("false"),
        "apiserver",
        &Leaf {
            common_name: "kube-apiserver",
            organisation: None,
            names: vec![host.v4.to_string()],
            usage: Usage::Server,
            validity: Validity::Now,
        },
    )?;
    let server = ApiServer::start(
        &host.namespace,
        &[address],
        &certificate,
        &false_ca.pair.cert,
    )?;
    let join =
        super::node::join_config(&lab, true)?.replace(&apiserver(&lab), &address.to_string());
    let node = Node::new(&lab, "mitm")?.put(super::node::JOIN, join)?;
    // With a CA of its own, and passing on the true cluster-info.
    for (ca, reason) in [
        (&false_ca.pair.cert, "does not match the hash"),
        (&lab.pki.kubernetes.pair.cert, "does not vouch for"),
    ] {
        server.answer(cluster_info::PATH, cluster_info::cluster_info(ca)?);
        let finished = node.preflight(&["--discover-etcd"])?;
        ensure!(finished.code == Some(3), "{finished:?}");
        let report = finished.report()?;
        let target = report.target(address)?;
        assert_eq!(target.verdict(), "fail");
        let findings = target.findings("fail");
        let text = format!("{findings:?}");
        assert!(text.contains(reason), "{text}");
    }
    for request in server.requests() {
        assert!(!request.authorized, "{request:?}");
        assert_eq!(request.client, None);
        assert!(!request.path.contains(TOKEN_SECRET));
    }
    // A CA on disk refuses it too, without a question.
    let before = server.requests().len();
    let node = node.with_authorities()?;
    let finished = node.preflight(&[])?;
    ensure!(finished.code == Some(3), "{finished:?}");
    let asked: Vec<_> = server.requests()[before..].to_vec();
    assert!(asked.is_empty(), "{asked:?}");
    Ok(())
}

#[test]
fn malformed_files_end_with_2_quickly() -> Result<()> {
    let Some(_turn) = take_turn(&["etcd"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(1).start()?;
    let good = super::node::join_config(&lab, true)?;
    for (name, text, parts) in [
        (
            "empty",
            String::new(),
            ["kubeadm-join-config.yaml", "empty"],
        ),
        (
            "cut",
            good.replace("discovery:", "discovery: ["),
            ["join-config.yaml", "YAML"],
        ),
        (
            "token",
            good.replace(".s3cr3t", ",s3cr3t"),
            ["bootstrapToken.token", "ID.SECRET"],
        ),
        (
            "hash",
            good.replace("sha256:", "sha1:"),
            ["caCertHashes[0]", "sha256:"],
        ),
        (
            "port",
            good.replace(":6443", ""),
            ["apiServerEndpoint", "port is missing"],
        ),
    ] {
        let node = Node::new(&lab, name)?.put(super::node::JOIN, text)?;
        let finished = node.preflight(&[])?;
        ensure!(finished.code == Some(2), "{name}: {finished:?}");
        assert_eq!(finished.stdout, "");
        for part in parts {
            assert!(finished.stderr.contains(part), "{finished:?}");
        }
        assert!(!finished.stderr.contains(TOKEN_SECRET), "{finished:?}");
        assert!(finished.elapsed.as_secs() < 5, "{finished:?}");
    }
    Ok(())
}
