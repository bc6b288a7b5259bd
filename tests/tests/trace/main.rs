//! `--trace` shows at which hop the time goes, and leaves nothing behind.

mod routers;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use joinprobe_lab::lab::Finished;
use joinprobe_lab::{Namespace, attempts, on_time, take_turn};
use routers::{ADDED, PORT, Routers, net, target};
use serde_json::Value;

fn trace(finished: &Finished, target: SocketAddr) -> Result<Value> {
    let report = finished.report()?;
    let trace = report.target(target)?.0["trace"].clone();
    ensure!(trace.is_object(), "no trace: {finished:?}");
    Ok(trace)
}

fn finding(finished: &Finished, target: SocketAddr, id: &str) -> Result<Value> {
    let report = finished.report()?;
    let findings = report.target(target)?.0["findings"].clone();
    let found = findings
        .as_array()
        .and_then(|all| all.iter().find(|finding| finding["id"] == id));
    found
        .cloned()
        .with_context(|| format!("no {id} in {findings}"))
}

/// The namespace's `Tcp:` and `TcpExt:` counters.
fn counters(namespace: &Namespace) -> Result<BTreeMap<String, u64>> {
    let text = namespace.enter(|| {
        ["snmp", "netstat"]
            .map(|file| std::fs::read_to_string(format!("/proc/thread-self/net/{file}")))
    })?;
    let mut counters = BTreeMap::new();
    for file in text {
        let file = file?;
        let lines: Vec<_> = file
            .lines()
            .filter(|line| line.starts_with("Tcp"))
            .collect();
        for pair in lines.chunks(2) {
            let [names, values] = pair else { continue };
            let names = names.split_whitespace().skip(1);
            let values = values.split_whitespace().skip(1);
            for (name, value) in names.zip(values) {
                counters.insert(name.to_owned(), value.parse().unwrap_or(0));
            }
        }
    }
    Ok(counters)
}

/// The server's counters, once so many connections were accepted: the last packets are on their way still.
fn settled(lab: &Routers, accepted: u64) -> Result<BTreeMap<String, u64>> {
    let patience = Instant::now() + Duration::from_secs(10);
    loop {
        let counters = counters(&lab.host)?;
        if counters["PassiveOpens"] >= accepted || Instant::now() > patience {
            std::thread::sleep(3 * ADDED);
            return self::counters(&lab.host);
        }
        std::thread::sleep(ADDED / 5);
    }
}

#[test]
fn shows_the_hop_where_the_time_goes_and_leaves_nothing() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe"])? else {
        return Ok(());
    };
    let lab = Routers::start()?;
    for (family, target) in target()?.into_iter().enumerate() {
        attempts(3, || traced(&lab, family, target))?;
    }
    Ok(())
}

fn traced(lab: &Routers, family: usize, target: SocketAddr) -> Result<()> {
    let before = counters(&lab.client)?;
    let served = counters(&lab.host)?;
    let finished = lab.preflight(target, &["--trace"])?;
    ensure!(finished.code == Some(0), "{finished:?}");
    let trace = trace(&finished, target)?;
    let paths = trace["paths"].as_array().context("no paths")?;
    ensure!(
        paths.len() == 1 && paths[0]["end"] == "established",
        "{trace}"
    );
    let hops = paths[0]["hops"].as_array().context("no hops")?;
    let expected = [net(0, 2)?, net(1, 2)?, net(2, 2)?, net(3, 2)?];
    ensure!(hops.len() == expected.len(), "{trace}");
    let mut rtts = Vec::new();
    for (hop, address) in hops.iter().zip(&expected) {
        ensure!(hop["address"] == address[family].to_string(), "{trace}");
        rtts.push(hop["rtt_us"].as_u64().context("no RTT")?);
    }
    let added = u64::try_from(ADDED.as_micros())?;
    ensure!(rtts[1..].iter().all(|rtt| *rtt >= added), "{trace}");

    // It says what it sent, and sent no more: one SYN each, beside the probe's own connections, of which there are
    // more while the median is undecided.
    let report = finished.report()?;
    let probed = report.target(target)?;
    let own = probed.number("/connections/established")?;
    let connections = trace["connections"].as_u64().context("no count")?;
    let serving = settled(lab, served["PassiveOpens"] + connections + own)?;
    let after = counters(&lab.client)?;
    // Less those to itself over loopback, where it tries what the kernel tells of RTTs.
    let to_itself = after["PassiveOpens"] - before["PassiveOpens"];
    let sent = after["ActiveOpens"] - before["ActiveOpens"] - to_itself;
    assert_eq!(Some(sent - own), trace["syns"].as_u64(), "{trace}");
    // What was sent again is in the report as the probe's own: no SYN of the trace was.
    let again = after["TCPSynRetrans"] - before["TCPSynRetrans"];
    assert_eq!(again, probed.number("/syn_retransmits")?);
    let accepted = serving["PassiveOpens"] - served["PassiveOpens"];
    assert_eq!(accepted - own, connections, "{trace}");
    // Each was closed in order: no RST from here (that trial may end by one), and none half open there.
    assert!(after["OutRsts"] - before["OutRsts"] <= to_itself);
    assert_eq!(serving["AttemptFails"], served["AttemptFails"]);
    assert_eq!(serving["EstabResets"], served["EstabResets"]);

    on_time(rtts[0] < added / 2, || trace.to_string())?;
    let text = finding(&finished, target, "trace")?["text"].to_string();
    let step = format!(
        "added between {} (hop 1) and {} (hop 2)",
        expected[0][family], expected[1][family]
    );
    ensure!(text.contains(&step), "{text}");
    Ok(())
}

#[test]
fn says_who_drops_and_who_rejects_and_is_offered_before() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe"])? else {
        return Ok(());
    };
    let lab = Routers::start()?;
    let target = target()?[0];
    let goal = target.ip();
    lab.third.ip(&format!("route add blackhole {goal}/32"))?;
    let finished = lab.preflight(target, &[])?;
    ensure!(finished.code == Some(3), "{finished:?}");
    let hint = finding(&finished, target, "reachable")?["hint"].to_string();
    ensure!(hint.contains("--trace"), "{hint}");
    ensure!(finished.report()?.target(target)?.0["trace"].is_null());

    let finished = lab.preflight(target, &["--trace"])?;
    ensure!(finished.code == Some(3), "{finished:?}");
    let text = finding(&finished, target, "trace")?["text"].to_string();
    let last = format!("the last that answered is {} (hop 2)", net(1, 2)?[0]);
    ensure!(text.contains(&last) && text.contains("drops"), "{text}");

    lab.third.ip(&format!("route del blackhole {goal}/32"))?;
    lab.third.ip(&format!("route add prohibit {goal}/32"))?;
    let finished = lab.preflight(target, &["--trace"])?;
    let text = finding(&finished, target, "trace")?["text"].to_string();
    ensure!(
        text.contains(&format!("{} rejects", net(2, 2)?[0])),
        "{text}"
    );
    Ok(())
}

#[test]
fn shows_several_paths() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe"])? else {
        return Ok(());
    };
    let lab = Routers::start()?;
    // A second way from the second router to the server's host, beside the third router.
    let other = Namespace::create()?;
    other.sysctl("net.ipv4.ip_forward", "1")?;
    routers::cable(&lab.second, &other, 4)?;
    routers::cable(&other, &lab.host, 5)?;
    other.ip(&format!(
        "route add {}/32 via {}",
        net(3, 2)?[0],
        net(5, 2)?[0]
    ))?;
    other.ip(&format!("route add 10.20.0.0/24 via {}", net(4, 1)?[0]))?;
    // Both ways back are the same, so only the way there differs.
    lab.second
        .sysctl("net.ipv4.fib_multipath_hash_policy", "1")?;
    lab.second.ip(&format!(
        "route replace 10.20.3.0/24 nexthop via {} nexthop via {}",
        net(2, 2)?[0],
        net(4, 2)?[0]
    ))?;
    for namespace in [&lab.host, &lab.second] {
        for scope in ["all", "default"] {
            namespace.sysctl(&format!("net.ipv4.conf.{scope}.rp_filter"), "0")?;
        }
    }
    let target = target()?[0];
    ensure!(target.port() == PORT);
    // Each flow's way is chosen by its ports: three take the same one in four.
    for _ in 0..6 {
        let finished = lab.preflight(target, &["--trace"])?;
        let trace = trace(&finished, target)?;
        let paths = trace["paths"].as_array().context("no paths")?;
        if paths.len() < 2 {
            continue;
        }
        let mut third: Vec<_> = paths
            .iter()
            .map(|path| {
                path["hops"][2]["address"]
                    .as_str()
                    .unwrap_or("none")
                    .to_owned()
            })
            .collect();
        third.sort();
        assert_eq!(third, ["10.20.2.2", "10.20.4.2"], "{trace}");
        let text = finding(&finished, target, "trace")?["text"].to_string();
        ensure!(text.contains("on 2 paths"), "{text}");
        return Ok(());
    }
    anyhow::bail!("six traces of three flows saw one path");
}
