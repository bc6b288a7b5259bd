//! A watch on a host that is an etcd member already: its connections to the other members were there before.
//!
//! A member only listens on most connections that it opens: raft's messages go from who accepted to who connected, and
//! only what is sent gives RTT samples. What it sends itself is a probe of each peer every 5 s.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use joinprobe_lab::lab::{Finished, Running, binary};
use joinprobe_lab::{Impairment, Lab, take_turn};
use serde_json::Value;

use crate::lines::lines;

/// Runs a watch on the first member's host.
fn watch(lab: &Lab, program: &Path, words: &[&str]) -> Result<Finished> {
    let words = words.iter().map(OsString::from);
    let finished = Running::start(&lab.member_nodes[0].namespace, program, words)?.wait()?;
    ensure!(finished.code == Some(0), "{finished:?}");
    Ok(finished)
}

/// The peers' rows of an interval: one per other member, and the one for what they opened.
fn peers<'a>(lab: &Lab, interval: &'a Value) -> Result<Vec<&'a Value>> {
    let rows = interval["targets"].as_array().context("no targets")?;
    let peer = |side: &str, target: &str| {
        rows.iter()
            .find(|row| {
                row["role"] == "etcd-peer" && row["side"] == side && row["target"] == target
            })
            .with_context(|| format!("no {side} row of {target} in {interval}"))
    };
    let mut found = vec![peer("server", "local:2380")?];
    for other in &lab.member_nodes[1..] {
        found.push(peer("client", &other.at(2380).to_string())?);
    }
    Ok(found)
}

#[test]
fn the_first_interval_shows_the_peers() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd", "setpriv"])? else {
        return Ok(());
    };
    let lab = Lab::builder().start()?;
    // Between the members themselves.
    let rtt = Impairment::half_of_rtt(Duration::from_millis(10));
    for other in &lab.member_nodes[1..] {
        lab.link.set_both(lab.member_nodes[0].id, other.id, rtt);
    }
    let joinprobe = binary()?;

    let json = ["watch", "-ojson", "--interval=7s", "--duration=8s"];
    let finished = watch(&lab, &joinprobe, &json)?;
    let intervals = lines(&finished, "interval")?;
    let first = intervals.first().context("no interval")?;
    for row in peers(&lab, first)? {
        ensure!(row["adopted"].as_u64() > Some(0), "{row}");
        ensure!(row["segment"]["count"].as_u64() > Some(0), "{row}");
        let (n, minimum) = (&row["segment_min"]["count"], &row["segment_min"]["p50_us"]);
        ensure!(n.as_u64() > Some(0), "{row}");
        ensure!(
            (9_500..30_000).contains(&minimum.as_u64().unwrap_or(0)),
            "{row}"
        );
    }

    let table = ["watch", "--interval=2s", "--duration=3s"];
    let finished = watch(&lab, &joinprobe, &table)?;
    let peer = format!("etcd-peer   {}", lab.member_nodes[1].at(2380));
    let labelled = |line: &&str| line.contains(&peer) && line.contains(" adopted]");
    let first = finished.stdout.lines().find(labelled);
    ensure!(first.is_some(), "{finished:?}");

    // Where they cannot be adopted they are sampled: the same rows, in the same interval.
    let only = "-all,+bpf,+net_admin";
    let mut words = vec!["--inh-caps", only, "--bounding-set", only, "--"];
    words.push(joinprobe.to_str().context("the binary's path is no text")?);
    words.extend(json);
    let finished = watch(&lab, Path::new("setpriv"), &words)?;
    let intervals = lines(&finished, "interval")?;
    for row in peers(&lab, intervals.first().context("no interval")?)? {
        let sampled = &row["sampled"];
        ensure!(sampled["open"].as_u64() > Some(0), "{row}");
        let smoothed = sampled["smoothed"]["p50_us"].as_u64().unwrap_or(0);
        // The connections are older than the link's delay, to which smoothed values come only by and by.
        ensure!((2_000..60_000).contains(&smoothed), "{row}");
        ensure!(row["adopted"].is_null(), "{row}");
    }
    Ok(())
}
