//! Counts and RTTs of `joinprobe watch` over a link that delays, against a capture.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use joinprobe_lab::lab::Running;
use joinprobe_lab::{Capture, Lab, take_turn};
use rustix::process::Signal;
use serde_json::Value;

use crate::lines::{lines, of_kind};

const ETCD_ROWS: [&str; 2] = ["etcd-client", "client"];

/// The etcd client row of a list of targets.
fn etcd(targets: &Value, address: SocketAddr) -> Option<&Value> {
    targets.as_array()?.iter().find(|row| {
        [row["role"].as_str(), row["side"].as_str()] == ETCD_ROWS.map(Some)
            && row["target"] == address.to_string()
    })
}

fn start(lab: &Lab, more: &[&str]) -> Result<Running> {
    let args = ["watch", "-o", "json", "--interval", "2s"];
    let mut running = lab.start_joinprobe(args.into_iter().chain(more.iter().copied()))?;
    running.wait_ready()?;
    Ok(running)
}

#[test]
fn counts_equal_the_captures_syns() -> Result<()> {
    let Some(_turn) = take_turn(&["tcpdump"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(0).spare_nodes(1).start()?;
    lab.set_rtt(Duration::from_millis(5));
    let server = lab.spare_nodes[0].at(2379);
    let dead = lab.spare_nodes[0].at(2380);
    let listener = lab.spare_nodes[0]
        .namespace
        .enter(|| TcpListener::bind(server))??;
    let running = start(&lab, &[])?;
    let capture = Capture::start(&lab.joiner.namespace, "any")?;
    lab.joiner.namespace.enter(|| -> Result<()> {
        for _ in 0..40 {
            let client = TcpStream::connect(server)?;
            drop(listener.accept()?);
            drop(client);
        }
        for _ in 0..3 {
            ensure!(TcpStream::connect(dead).is_err());
        }
        Ok(())
    })??;
    sleep(Duration::from_secs(1));
    let recording = capture.stop()?;
    running.signal(Signal::TERM)?;
    let finished = running.wait()?;
    ensure!(finished.code == Some(0), "{finished:?}");
    let verdicts = lines(&finished, "verdict")?;
    let verdict = verdicts.first().context("no verdict")?;
    let row = etcd(&verdict["targets"], server).context("no row")?;
    assert_eq!(
        row["connections"]["established"],
        recording.flows_to(server).len()
    );
    let refused = verdict["targets"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|row| row["target"] == dead.to_string())
        .context("no row of what was refused")?;
    assert_eq!(
        refused["connections"]["refused"],
        recording.flows_to(dead).len()
    );
    let sum: u64 = lines(&finished, "interval")?
        .iter()
        .filter_map(|interval| etcd(&interval["targets"], server))
        .filter_map(|row| row["connections"]["established"].as_u64())
        .sum();
    assert_eq!(sum, 40, "the intervals do not add up to the run");
    Ok(())
}

/// Whether the newest interval with handshakes shows the long way and is judged by it.
fn newest_is_slow(running: &Running, server: SocketAddr) -> Option<bool> {
    let printed = running.printed();
    let whole = printed.rsplit_once('\n')?.0;
    let intervals = of_kind(whole, "interval").ok()?;
    let (median, interval) = intervals.iter().rev().find_map(|interval| {
        let row = etcd(&interval["targets"], server)?;
        Some((row["handshake"]["p50_us"].as_u64()?, interval))
    })?;
    Some(median > 100_000 && interval["verdict"] == "fail")
}

#[test]
fn a_step_of_the_rtt_shows_and_decides_the_run() -> Result<()> {
    let Some(_turn) = take_turn(&[])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(0).spare_nodes(1).start()?;
    lab.set_rtt(Duration::from_millis(5));
    let server = lab.spare_nodes[0].at(2379);
    let listener = lab.spare_nodes[0]
        .namespace
        .enter(|| TcpListener::bind(server))??;
    let mut running = start(&lab, &["--fail-on-verdict"])?;
    let stop = Arc::new(AtomicBool::new(false));
    scope(|scope| -> Result<()> {
        let stopped = Arc::clone(&stop);
        let traffic = scope.spawn(|| {
            lab.joiner.namespace.enter(move || -> Result<()> {
                while !stopped.load(Ordering::Relaxed) {
                    let client = TcpStream::connect(server)?;
                    drop(listener.accept()?);
                    drop(client);
                    sleep(Duration::from_millis(20));
                }
                Ok(())
            })
        });
        let steps = [(120, Some(false)), (5, Some(true)), (5, Some(false))];
        let mut seen = Ok(());
        for (next, slow) in steps {
            seen = seen.and_then(|()| {
                running.wait_until(|running| newest_is_slow(running, server) == slow)
            });
            lab.set_rtt(Duration::from_millis(next));
        }
        stop.store(true, Ordering::Relaxed);
        traffic.join().ok().context("the traffic panicked")???;
        seen
    })?;
    running.signal(Signal::INT)?;
    let finished = running.wait()?;
    ensure!(finished.code == Some(3), "{finished:?}");
    let medians: Vec<u64> = lines(&finished, "interval")?
        .iter()
        .filter_map(|interval| etcd(&interval["targets"], server)?["handshake"]["p50_us"].as_u64())
        .collect();
    let first = medians.iter().position(|median| *median > 100_000);
    let first = first.with_context(|| format!("no slow interval in {medians:?}"))?;
    ensure!(first > 0 && medians[0] < 30_000, "{medians:?}");
    ensure!(
        medians.last().is_some_and(|last| *last < 30_000),
        "{medians:?}"
    );
    let verdicts = lines(&finished, "verdict")?;
    let verdict = verdicts.first().context("no verdict")?;
    assert_eq!(verdict["verdict"], "fail");
    let findings = verdict["findings"].as_array().context("no findings")?;
    let worst = findings
        .iter()
        .find(|finding| finding["id"] == "worst-interval")
        .context("no worst interval")?;
    assert_eq!(worst["state"], "fail");
    // The whole run's distribution stands beside it.
    let row = etcd(&verdict["targets"], server).context("no row")?;
    ensure!(row["handshake"]["max_us"].as_u64() > Some(100_000), "{row}");
    Ok(())
}

#[test]
fn a_reader_that_goes_ends_the_watch() -> Result<()> {
    let Some(_turn) = take_turn(&[])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(0).start()?;
    let binary = joinprobe_lab::lab::binary()?;
    let script = format!(
        "set -o pipefail; {} watch -o json --interval 1s --max-duration 40s | head -1",
        binary.display()
    );
    let finished = Running::start(
        &lab.joiner.namespace,
        "/bin/bash".as_ref(),
        ["-c".into(), script.into()],
    )?
    .wait()?;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(finished.stdout.lines().count(), 1);
    ensure!(finished.elapsed < Duration::from_secs(30), "{finished:?}");
    Ok(())
}
