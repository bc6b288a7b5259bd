//! Segment sizes, and a path that silently loses the large ones.

use anyhow::{Context, Result, ensure};
use joinprobe_lab::lab::{APISERVER_PORT, Finished};
use joinprobe_lab::link::DEVICE;
use joinprobe_lab::{Impairment, Lab, take_turn};

use super::{api_server, finding};

fn preflight(lab: &Lab) -> Result<Finished> {
    lab.run_joinprobe([
        "preflight".to_owned(),
        "--no-discovery".to_owned(),
        "--worker".to_owned(),
        "--timeout=3s".to_owned(),
        "--output=json".to_owned(),
        format!("--apiserver={}", lab.spare_nodes[0].at(APISERVER_PORT)),
        format!("--apiserver-ca={}", lab.pki.kubernetes.pair.cert.display()),
    ])
}

#[test]
fn large_segments_that_vanish_are_told_from_a_narrow_path() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(1).spare_nodes(1).start()?;
    let node = &lab.spare_nodes[0];
    // So many names that its certificate takes more than one segment, as those of real API servers do.
    let names = (0..80)
        .map(|n| format!("kubernetes-api-server-name-{n}.example"))
        .chain([node.v4.to_string()]);
    let address = node.at(APISERVER_PORT);
    let _server = api_server(&lab, node, address, names.collect())?;

    let open = preflight(&lab)?;
    ensure!(open.code == Some(0), "{open:?}");
    ensure!(finding(&open, "path-mtu")?.is_none(), "{open:?}");
    let report = open.report()?;
    let probe = report.target(address)?;
    assert_eq!(probe.number("/probe/path_mtu_bytes")?, 1500);
    assert_eq!(probe.number("/probe/own_mss_bytes")?, 1448);
    assert_eq!(probe.number("/probe/mss_bytes")?, 1448);

    // Only the way back, where the certificate comes: our own segments are small.
    let black_hole = Impairment {
        largest: Some(1400),
        ..Impairment::default()
    };
    lab.link.set(node.id, lab.joiner.id, black_hole);
    let lost = preflight(&lab)?;
    ensure!(lost.code == Some(3), "{lost:?}");
    let said = finding(&lost, "path-mtu")?.context("nothing about segments")?;
    assert_eq!(said["state"], "warn");
    let text = said["text"].to_string();
    ensure!(
        text.contains("large segments from there are lost"),
        "{text}"
    );
    ensure!(said["hint"].to_string().contains("MTU"), "{said}");

    // A server that is merely slow to answer gives no such sign: nothing came at all.
    lab.link.set(
        node.id,
        lab.joiner.id,
        Impairment {
            largest: Some(300),
            ..Impairment::default()
        },
    );
    let silent = preflight(&lab)?;
    ensure!(silent.code == Some(3), "{silent:?}");
    let said = finding(&silent, "path-mtu")?.context("nothing about segments")?;
    assert_eq!(said["state"], "not_decided", "{said}");

    // A narrower interface at the server tells its MSS, so that nothing is lost.
    lab.link.set(node.id, lab.joiner.id, black_hole);
    node.namespace.ip(&format!("link set {DEVICE} mtu 1300"))?;
    let narrow = preflight(&lab)?;
    ensure!(narrow.code == Some(0), "{narrow:?}");
    let said = finding(&narrow, "path-mtu")?.context("nothing about segments")?;
    assert_eq!(said["state"], "pass");
    // 1300 less the headers of IPv4 and TCP, and its timestamps.
    ensure!(
        said["text"].to_string().contains("at most 1248 bytes"),
        "{said}"
    );
    Ok(())
}
