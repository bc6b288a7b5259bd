//! HdrHistogram's Python package reads the interval log and comes to our numbers.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use joinprobe_lab::{can_run, scratch_dir};
use probe_user::output::{Exporter as _, HistogramLog};

use crate::samples;

/// Prints tag, count, p50, p99 and maximum of every tag, its intervals added up.
const SCRIPT: &str = r"
import sys
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
sums = {}
reader = HistogramLogReader(sys.argv[1], HdrHistogram(1, 67108863, 2))
while True:
    interval = reader.get_next_interval_histogram()
    if interval is None:
        break
    sums.setdefault(interval.get_tag(), HdrHistogram(1, 67108863, 2)).add(interval)
for tag, sum in sums.items():
    print(tag, sum.get_total_count(), sum.get_value_at_percentile(50), sum.get_value_at_percentile(99), sum.get_max_value())
";

/// A Python that has the package: this machine's, or the one `cargo xtask test` prepares.
fn python() -> Result<Option<PathBuf>> {
    let prepared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/hdrh/bin/python3");
    for python in [PathBuf::from("python3"), prepared] {
        let has_it = Command::new(&python).args(["-c", "import hdrh"]).output();
        if has_it.is_ok_and(|output| output.status.success()) {
            return Ok(Some(python));
        }
    }
    // Says so, and fails under CI.
    if can_run(&["a python3 with the package hdrhistogram"])? {
        bail!("a program of that name is there");
    }
    Ok(None)
}

#[test]
fn python_reads_the_log_and_agrees() -> Result<()> {
    let Some(python) = python()? else {
        return Ok(());
    };
    let folder = scratch_dir()?;
    let path = folder.path().join("rtt.hlog");
    let mut log = HistogramLog::new(&path);
    let report = samples::interval()?;
    for _ in 0..3 {
        log.interval(&report)?;
    }
    let output = Command::new(python)
        .args(["-c", SCRIPT])
        .arg(&path)
        .output()?;
    let said = String::from_utf8(output.stdout)?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut compared = 0;
    for target in &report.totals {
        for (measure, samples) in target.measures() {
            let Some(ours) = samples.quantiles() else {
                continue;
            };
            let tag = format!("target={};side=client;measure={measure} ", target.target);
            let line = said.lines().find(|line| line.contains(&tag));
            let line = line.with_context(|| format!("{tag} is not in {said}"))?;
            let theirs: Vec<u64> = line
                .split(' ')
                .skip(1)
                .map(str::parse)
                .collect::<Result<_, _>>()?;
            assert_eq!(
                theirs,
                [samples.count() * 3, ours.p50_us, ours.p99_us, ours.max_us],
                "{line}"
            );
            compared += 1;
        }
    }
    assert_eq!(compared, 9);
    Ok(())
}
