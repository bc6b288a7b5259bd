//! Joinprobe's own time and memory.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use joinprobe_lab::Namespace;
use joinprobe_lab::bpf::BpfObjects;
use joinprobe_lab::programs::command;

use super::Bench;
use super::figure::Figure;
use super::load::{Server, request_response};
use super::measured::Measured;

/// Intervals whose cost is averaged.
const INTERVALS: u32 = 20;
/// Their length: short, so that much is reported in little time.
const INTERVAL: Duration = Duration::from_millis(250);

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let namespace = Namespace::create()?;
    let (mut ready, mut memory, mut peak, mut maps) = (vec![], vec![], vec![], vec![]);
    for _ in 0..bench.rounds {
        let watch = Measured::watch(&namespace, &bench.joinprobe, &[])?;
        ready.push(watch.ready_after.as_secs_f64() * 1e3);
        memory.push(watch.status_kib("VmRSS")? / 1024.0);
        peak.push(watch.status_kib("VmHWM")? / 1024.0);
        maps.push(map_bytes(watch.pid())? / 1024.0 / 1024.0);
    }
    let size = std::fs::metadata(&bench.joinprobe)?.len();
    let size = f64::from(u32::try_from(size)?) / 1e6;
    let mut figures = vec![
        Figure::new("start to attached (watch)", "ms", ready).at_most(60.0),
        Figure::new("VmRSS after attaching", "MiB", memory).at_most(12.0),
        Figure::new("VmHWM, the peak while starting", "MiB", peak),
        Figure::new("kernel memory of the maps", "MiB", maps),
        Figure::once("size of the stripped binary", "MB", size).at_most(8.0),
    ];
    figures.extend(intervals(bench)?);
    Ok(figures)
}

/// Bytes of all maps that a process holds, as the kernel counts them (`memlock` of a map's fdinfo).
fn map_bytes(pid: u32) -> Result<f64> {
    let mut total = 0.0;
    for map in BpfObjects::of(pid)?.maps {
        let output = command("bpftool")
            .args(["-j", "map", "show", "id", &map.to_string()])
            .output()?;
        let shown: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        total += shown["bytes_memlock"].as_f64().unwrap_or(0.0);
    }
    Ok(total)
}

/// Processor time per report: with nothing to report, with few samples, with many.
fn intervals(bench: &Bench) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut costs = Vec::new();
    for round_trips in [0, 1_000, 100_000] {
        let namespace = Namespace::create()?;
        let echo = Server::echo(&namespace, 2379)?;
        let interval = format!("{}ms", INTERVAL.as_millis());
        let watch = Measured::watch(&namespace, &bench.joinprobe, &["--interval", &interval])?;
        let before = watch.used()?;
        if round_trips > 0 {
            request_response(&namespace, echo.address, 1, round_trips)?;
        }
        sleep(INTERVAL * INTERVALS);
        let used = watch.used()?.since(before).cpu;
        let reports = watch.stop()?.0.lines().count();
        let reports = f64::from(u32::try_from(reports).context("too many reports")?);
        echo.stop(&namespace);
        let cost = used / reports * 1e6;
        costs.push(cost);
        figures.push(Figure::once(
            format!("user side, per report, after {round_trips} round trips"),
            "us",
            cost,
        ));
    }
    // Flat: a hundred times the samples must not cost twice the time.
    if let [_, few, many] = costs[..] {
        figures.push(
            Figure::once("user side, 100,000 round trips / 1,000", "", many / few).at_most(2.0),
        );
    }
    Ok(figures)
}
