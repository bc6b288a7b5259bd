//! What joinprobe says about round-trip times, held against the kernel's own timestamps on the wire.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use joinprobe_lab::capture::Flow;
use joinprobe_lab::etcd::CLIENT_PORT;
use joinprobe_lab::lab::APISERVER_PORT;
use joinprobe_lab::link::DEVICE;
use joinprobe_lab::report::Target;
use joinprobe_lab::{Capture, Impairment, Lab, attempts, on_time, take_turn};

const PROGRAMS: &[&str] = &["joinprobe", "etcd", "tcpdump"];

fn targets(lab: &Lab) -> Vec<SocketAddr> {
    let members = lab.member_nodes.iter().map(|node| node.at(CLIENT_PORT));
    members
        .chain([lab.apiserver_node.at(APISERVER_PORT)])
        .collect()
}

fn json_args(lab: &Lab) -> Vec<OsString> {
    let mut args = lab.preflight_args();
    args.extend(["-o".into(), "json".into()]);
    args
}

/// Runs preflights under a capture until one handshake with each target was said to take what it took on the wire, up to
/// 100 us + 1 %. A packet that lies captured before a busy kernel takes it up is late, and honestly said to be: not every
/// handshake can be held to that.
fn check_handshakes(lab: &Lab) -> Result<Vec<String>> {
    let mut open: BTreeSet<SocketAddr> = targets(lab).into_iter().collect();
    attempts(5, || {
        let capture = Capture::start(&lab.joiner.namespace, DEVICE)?;
        let report = lab.run_joinprobe(json_args(lab))?.report()?;
        let recording = capture.stop()?;
        let mut lines = Vec::new();
        for address in targets(lab) {
            let flows = recording.flows_to(address);
            let target = report.target(address)?;
            // A SYN that was sent again, be it for nothing, leaves its connection without a sample.
            let clean: Vec<u64> = flows
                .iter()
                .filter(|flow| flow.syns() == 1)
                .filter_map(Flow::handshake_rtt)
                .map(micros)
                .collect::<Result<_>>()?;
            assert_eq!(
                target.number("/handshake/count")?,
                u64::try_from(clean.len())?,
                "{address}: {flows:?}"
            );
            let [truth] = clean[..] else {
                lines.push(format!("{address}: {} handshakes", clean.len()));
                continue;
            };
            let said = target.number("/handshake/p50_us")?;
            lines.push(format!("{address}: {said} us, on the wire {truth} us"));
            if said.abs_diff(truth) <= 100 + truth / 100 {
                open.remove(&address);
            }
        }
        on_time(open.is_empty(), || format!("{open:?} of {lines:?}"))?;
        Ok(lines)
    })
}

fn micros(time: Duration) -> Result<u64> {
    Ok(u64::try_from(time.as_micros())?)
}

fn ten_away() -> Result<Lab> {
    Lab::builder()
        .shape(Impairment::half_of_rtt(Duration::from_millis(10)))
        .start()
}

/// Holds a preflight with these arguments to what is 10 ms away at these addresses.
fn check_ten_away(lab: &Lab, args: &[OsString], targets: &[SocketAddr]) -> Result<()> {
    attempts(5, || {
        let run = lab.run_joinprobe(args.iter().cloned())?;
        assert_eq!(run.code, Some(0), "{run:?}");
        let report = run.report()?;
        assert_eq!(report.text("/etcd_probe/result"), "ok");
        for address in targets {
            ten_milliseconds(report.target(*address)?)?;
        }
        Ok(())
    })
}

/// What a target 10 ms away shows. The link is never early; it may be late, and a sample be lost for that.
fn ten_milliseconds(target: Target<'_>) -> Result<()> {
    for measure in ["/handshake/p50_us", "/path/p50_us"] {
        let value = target.number(measure)?;
        assert!(value >= 9_900, "{measure}: {target:?}");
        on_time(value <= 12_000, || format!("{measure} is {value} us"))?;
    }
    assert_eq!(target.number("/handshake/count")?, 1, "{target:?}");
    let count = target.number("/path/count")?;
    on_time(count >= 14, || format!("{count} samples"))
}

#[test]
fn ten_milliseconds_are_ten_milliseconds() -> Result<()> {
    let Some(_turn) = take_turn(PROGRAMS)? else {
        return Ok(());
    };
    let lab = ten_away()?;
    check_ten_away(&lab, &json_args(&lab), &targets(&lab))
}

#[test]
fn handshakes_agree_with_the_wire() -> Result<()> {
    let Some(_turn) = take_turn(PROGRAMS)? else {
        return Ok(());
    };
    let lab = Lab::builder().start()?;
    for rtt in [1, 10, 60] {
        lab.set_rtt(Duration::from_millis(rtt));
        let lines = check_handshakes(&lab).with_context(|| format!("{rtt} ms"))?;
        println!("{rtt} ms: {lines:#?}");
    }
    lab.shape(
        Impairment::half_of_rtt(Duration::from_millis(20)).with_jitter(Duration::from_millis(5)),
    );
    let lines = check_handshakes(&lab).context("20 ms with jitter")?;
    println!("20 ms with jitter: {lines:#?}");
    Ok(())
}

#[test]
fn ipv6_is_measured_like_ipv4() -> Result<()> {
    let Some(_turn) = take_turn(PROGRAMS)? else {
        return Ok(());
    };
    let lab = ten_away()?;
    let mut args = json_args(&lab);
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
    let nodes = lab.member_nodes.iter();
    let targets: Vec<_> = nodes.map(|node| node.at_v6(CLIENT_PORT)).collect();
    check_ten_away(&lab, &args, &targets)
}

#[test]
fn time_to_verdict_and_memory() -> Result<()> {
    let Some(_turn) = take_turn(PROGRAMS)? else {
        return Ok(());
    };
    let lab = ten_away()?;
    attempts(5, || {
        let run = lab.run_joinprobe(json_args(&lab))?;
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
        on_time(run.elapsed < Duration::from_millis(1200), || {
            format!("{:?}", run.elapsed)
        })
    })
}
