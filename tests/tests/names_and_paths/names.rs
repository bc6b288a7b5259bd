//! Names with several addresses, slow and mute name servers, SRV records, IPv6 with a zone.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use joinprobe_lab::etcd::CLIENT_PORT;
use joinprobe_lab::lab::{APISERVER_PORT, Finished, Running, binary};
use joinprobe_lab::link::DEVICE;
use joinprobe_lab::{Lab, take_turn};

use super::{api_server, finding, name_server};

fn preflight(lab: &Lab, more: &[&str]) -> Result<Finished> {
    let words = [
        "preflight",
        "--no-discovery",
        "-o",
        "json",
        "--timeout",
        "5s",
    ];
    joinprobe(lab, &[&words, more].concat())
}

/// joinprobe with a name server of our own in /etc/resolv.conf, which nobody else sees.
fn joinprobe(lab: &Lab, words: &[&str]) -> Result<Finished> {
    let settings = lab.folder().join("resolv.conf");
    std::fs::write(
        &settings,
        format!(
            "nameserver {}\noptions attempts:1 timeout:2\n",
            name_server::ADDRESS
        ),
    )?;
    let script = "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"";
    let mut args: Vec<OsString> = ["--mount", "sh", "-c", script].map(Into::into).to_vec();
    args.extend([settings.into(), binary()?.into()]);
    args.extend(words.iter().map(Into::into));
    Running::start(&lab.joiner.namespace, Path::new("unshare"), args)?.wait()
}

#[test]
fn each_address_slow_names_and_services() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd", "unshare"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(2).start()?;
    name_server::start(&lab.joiner.namespace)?;

    let two = preflight(&lab, &["--etcd", "two.test:2379"])?;
    ensure!(two.code == Some(0), "{two:?}");
    let report = two.report()?;
    assert_eq!(report.targets().len(), 2);
    for node in &lab.member_nodes {
        let target = report.target(node.at(CLIENT_PORT))?;
        assert_eq!(target.text("/host"), "two.test");
        ensure!(target.number("/probe/dns_us")? > 0);
    }
    assert_eq!(finding(&two, "dns-time")?.context("none")?["state"], "pass");

    let slow = preflight(&lab, &["--etcd", "slow.test:2379"])?;
    ensure!(slow.code == Some(0), "{slow:?}");
    let said = finding(&slow, "dns-time")?.context("nothing about the name")?;
    assert_eq!(said["state"], "warn", "{said}");
    let took = u128::from(said["value_us"].as_u64().context("no value")?);
    ensure!(took >= name_server::SLOW.as_micros(), "{said}");
    // A slow name is not a slow network.
    let report = slow.report()?;
    let target = report.target(lab.member_nodes[0].at(CLIENT_PORT))?;
    ensure!(u128::from(target.number("/probe/tcp_us")?) < name_server::SLOW.as_micros());

    // Names to watch are asked for in the same way.
    let watch = ["watch", "--duration", "300ms", "-o", "json", "--watch"];
    let watched = joinprobe(&lab, &[&watch[..], &["two.test:2379=etcd-client"]].concat())?;
    ensure!(watched.code == Some(0), "{watched:?}");
    let unknown = joinprobe(&lab, &[&watch[..], &["none.test:443=apiserver"]].concat())?;
    ensure!(unknown.code == Some(2), "{unknown:?}");
    for part in ["--watch none.test:443=apiserver", "asked", "127.0.0.53"] {
        ensure!(unknown.stderr.contains(part), "{part}: {unknown:?}");
    }

    let mute = preflight(&lab, &["--etcd", "mute.test:2379"])?;
    ensure!(mute.code == Some(3), "{mute:?}");
    let said = finding(&mute, "reachable")?.context("nothing about the name")?;
    let text = said["text"].to_string();
    ensure!(text.contains("no name server (127.0.0.53)"), "{text}");

    let services = preflight(&lab, &["--etcd-srv", "srv.test"])?;
    ensure!(services.code == Some(0), "{services:?}");
    let said = finding(&services, "etcd-srv")?.context("nothing about services")?;
    ensure!(
        said["text"].to_string().contains("name 2 etcd addresses"),
        "{said}"
    );
    let report = services.report()?;
    for node in &lab.member_nodes {
        let target = report.target(node.at(CLIENT_PORT))?;
        let origin = target.text("/found_in/0");
        ensure!(
            origin.contains("SRV _etcd-client-ssl._tcp.srv.test"),
            "{origin}"
        );
    }
    Ok(())
}

#[test]
fn a_link_local_address_with_its_zone() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(1).spare_nodes(1).start()?;
    let server = &lab.spare_nodes[0];
    for (node, address) in [(&lab.joiner, "fe80::a"), (server, "fe80::b")] {
        node.namespace
            .ip(&format!("addr add {address}/64 dev {DEVICE} nodad"))?;
        lab.link.route(address.parse()?, node.id);
    }
    let everywhere = format!("[::]:{APISERVER_PORT}").parse()?;
    let _server = api_server(&lab, server, everywhere, vec!["fe80::b".to_owned()])?;
    let finished = lab.run_joinprobe([
        "preflight".to_owned(),
        "--no-discovery".to_owned(),
        "--worker".to_owned(),
        "--output=json".to_owned(),
        format!("--apiserver=[fe80::b%{DEVICE}]:{APISERVER_PORT}"),
        format!("--apiserver-ca={}", lab.pki.kubernetes.pair.cert.display()),
    ])?;
    ensure!(finished.code == Some(0), "{finished:?}");
    let report = finished.report()?;
    let target = &report.targets()[0];
    assert_eq!(target.text("/probe/tls"), "verified");
    ensure!(target.number("/path/count")? >= 5, "{finished:?}");

    let elsewhere = lab.run_joinprobe([
        "preflight",
        "--no-discovery",
        "--worker",
        "--output=json",
        "--apiserver=[fe80::b%nowhere0]:6443",
    ])?;
    ensure!(elsewhere.code == Some(3), "{elsewhere:?}");
    let said = finding(&elsewhere, "reachable")?.context("nothing")?;
    ensure!(said["text"].to_string().contains("`nowhere0`"), "{said}");
    Ok(())
}
