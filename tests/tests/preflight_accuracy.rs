//! What joinprobe says about round-trip times, held against the kernel's own timestamps on the wire.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use joinprobe_lab::etcd::CLIENT_PORT;
use joinprobe_lab::lab::APISERVER_PORT;
use joinprobe_lab::link::DEVICE;
use joinprobe_lab::{Capture, Impairment, Lab, take_turn};

const PROGRAMS: &[&str] = &["joinprobe", "etcd", "tcpdump"];

fn targets(lab: &Lab) -> Vec<SocketAddr> {
    let members = lab.member_nodes.iter().map(|node| node.at(CLIENT_PORT));
    members
        .chain([lab.apiserver_node.at(APISERVER_PORT)])
        .collect()
}

/// Runs a preflight under a capture; the largest handshake error in microseconds, each within 100 us + 1 %.
fn check_handshakes(lab: &Lab) -> Result<Vec<String>> {
    let capture = Capture::start(&lab.joiner.namespace, DEVICE)?;
    let mut args = lab.preflight_args();
    args.extend(["-o".into(), "json".into()]);
    let report = lab.run_joinprobe(args)?.report()?;
    let recording = capture.stop()?;
    let mut lines = Vec::new();
    for address in targets(lab) {
        let flows = recording.flows_to(address);
        let target = report.target(address)?;
        let truth = flows
            .first()
            .and_then(joinprobe_lab::capture::Flow::handshake_rtt);
        let truth = u64::try_from(truth.context("no handshake in the capture")?.as_nanos())? / 1000;
        let said = target.number("/handshake/p50_us")?;
        let error = said.abs_diff(truth);
        lines.push(format!("{address}: {said} us, on the wire {truth} us"));
        assert!(error <= 100 + truth / 100, "{lines:?}");
        assert_eq!(
            target.number("/handshake/count")?,
            u64::try_from(flows.len())?
        );
    }
    Ok(lines)
}

#[test]
fn ten_milliseconds_are_ten_milliseconds() -> Result<()> {
    let Some(_turn) = take_turn(PROGRAMS)? else {
        return Ok(());
    };
    let lab = Lab::builder()
        .shape(Impairment::half_of_rtt(Duration::from_millis(10)))
        .start()?;
    let mut best = u64::MAX;
    for _ in 0..3 {
        let mut args = lab.preflight_args();
        args.extend(["-o".into(), "json".into()]);
        let run = lab.run_joinprobe(args)?;
        assert_eq!(run.code, Some(0), "{run:?}");
        let report = run.report()?;
        assert_eq!(report.text("/etcd_probe/result"), "ok");
        let mut worst = 0;
        for address in targets(&lab) {
            let target = report.target(address)?;
            assert!(target.number("/path/count")? >= 14, "{target:?}");
            for measure in ["/handshake/p50_us", "/path/p50_us"] {
                let value = target.number(measure)?;
                assert!(value >= 9_500, "{address} {measure}: {value}");
                worst = worst.max(value);
            }
        }
        best = best.min(worst);
    }
    // The machine is shared: a single run may have been held up.
    assert!(best <= 12_000, "the best of three runs shows {best} us");
    Ok(())
}

#[test]
fn handshakes_agree_with_the_wire() -> Result<()> {
    let Some(_turn) = take_turn(PROGRAMS)? else {
        return Ok(());
    };
    let lab = Lab::builder().start()?;
    for rtt in [1, 10, 60] {
        lab.set_rtt(Duration::from_millis(rtt));
        println!("{rtt} ms: {:#?}", check_handshakes(&lab)?);
    }
    lab.shape(
        Impairment::half_of_rtt(Duration::from_millis(20)).with_jitter(Duration::from_millis(5)),
    );
    println!("20 ms with jitter: {:#?}", check_handshakes(&lab)?);
    Ok(())
}

#[test]
fn ipv6_is_measured_like_ipv4() -> Result<()> {
    let Some(_turn) = take_turn(PROGRAMS)? else {
        return Ok(());
    };
    let lab = Lab::builder()
        .shape(Impairment::half_of_rtt(Duration::from_millis(10)))
        .start()?;
    let mut args = lab.preflight_args();
    for word in &mut args {
        let address = word
            .to_str()
            .and_then(|word| word.parse::<SocketAddr>().ok());
        let nodes = lab.member_nodes.iter().chain([&lab.apiserver_node]);
        let node =
            address.and_then(|address| nodes.into_iter().find(|node| address.ip() == node.v4));
        if let (Some(node), Some(address)) = (node, address) {
            *word = node.at_v6(address.port()).to_string().into();
        }
    }
    args.extend(["-o".into(), "json".into()]);
    let run = lab.run_joinprobe(args)?;
    assert_eq!(run.code, Some(0), "{run:?}");
    let report = run.report()?;
    assert_eq!(report.text("/etcd_probe/result"), "ok");
    for node in &lab.member_nodes {
        let target = report.target(node.at_v6(CLIENT_PORT))?;
        assert_eq!(target.number("/handshake/count")?, 1, "{target:?}");
        for measure in ["/handshake/p50_us", "/path/p50_us"] {
            assert!(
                (9_500..20_000).contains(&target.number(measure)?),
                "{target:?}"
            );
        }
    }
    Ok(())
}

#[test]
fn time_to_verdict_and_memory() -> Result<()> {
    let Some(_turn) = take_turn(PROGRAMS)? else {
        return Ok(());
    };
    let lab = Lab::builder()
        .shape(Impairment::half_of_rtt(Duration::from_millis(10)))
        .start()?;
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let mut args = lab.preflight_args();
        args.extend(["-o".into(), "json".into()]);
        let run = lab.run_joinprobe(args)?;
        let report = run.report()?;
        let (rss, peak) = (
            report.number("/observer/rss_bytes")?,
            report.number("/observer/rss_peak_bytes")?,
        );
        println!(
            "{:?}, {rss} bytes after attaching, {peak} at most",
            run.elapsed
        );
        assert!(rss < 20_000_000, "{rss} bytes after attaching");
        assert!(peak >= rss);
        best = best.min(run.elapsed);
    }
    assert!(best < Duration::from_millis(1200), "{best:?}");
    Ok(())
}
