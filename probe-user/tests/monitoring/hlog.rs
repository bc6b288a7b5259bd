//! HdrHistogram's Python package reads the interval log and comes to our numbers.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use joinprobe_lab::{can_run, scratch_dir};
use probe_user::histogram;
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

/// What Python's package makes of the log: by tag its count, p50, p99 and maximum.
fn by_python(python: &Path, path: &Path) -> Result<Vec<(String, [u64; 4])>> {
    let output = Command::new(python)
        .args(["-c", SCRIPT])
        .arg(path)
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}");
    String::from_utf8(output.stdout)?
        .lines()
        .map(|line| {
            let (tag, numbers) = line.split_once(' ').context("no numbers")?;
            let numbers: Vec<u64> = numbers
                .split(' ')
                .map(str::parse)
                .collect::<Result<_, _>>()?;
            let numbers = numbers.try_into().ok().context("not four numbers")?;
            Ok((tag.to_owned(), numbers))
        })
        .collect()
}

fn of(read: &[(String, [u64; 4])], target: &str, measure: &str) -> Result<[u64; 4]> {
    let tag = format!("target={target};side=client;measure={measure}");
    let found = read.iter().find(|(found, _)| found.ends_with(&tag));
    found
        .map(|(_, numbers)| *numbers)
        .with_context(|| format!("{tag} is not in {read:?}"))
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
    let read = by_python(&python, &path)?;
    let mut compared = 0;
    for target in &report.totals {
        for (measure, samples) in target.measures() {
            let Some(ours) = samples.quantiles() else {
                continue;
            };
            assert_eq!(
                of(&read, &target.target, measure)?,
                [samples.count() * 3, ours.p50_us, ours.p99_us, ours.max_us],
                "{measure} of {}",
                target.target
            );
            compared += 1;
        }
    }
    assert_eq!(compared, 9);
    Ok(())
}

/// Where a quantile lies between two samples, we take the upper one (the rank is rounded up)
/// and Python's package the nearer one. Its answer must then be our sample of that rank.
#[test]
fn between_two_samples_python_takes_the_nearer_one() -> Result<()> {
    let Some(python) = python()? else {
        return Ok(());
    };
    let folder = scratch_dir()?;
    let path = folder.path().join("rtt.hlog");
    let mut report = samples::interval()?;
    let target = &mut report.targets[0].measured;
    let samples = &mut target.handshake.distribution;
    for value in 0..61 {
        histogram::record(samples, 30_000 + value * 1_000, 1);
    }
    let n = samples.len();
    assert_eq!((n, n * 99 / 100, n * 99 % 100), (261, 258, 39));
    #[allow(clippy::cast_precision_loss, reason = "small numbers")]
    let at_rank = |rank: u64| samples.value_at_quantile(rank as f64 / n as f64);
    let (lower, upper) = (at_rank(258), at_rank(259));
    assert_ne!(lower, upper);
    assert_eq!(samples.value_at_quantile(0.99), upper);
    let target = target.target.clone();
    HistogramLog::new(&path).interval(&report)?;
    let [count, _, p99, _] = of(&by_python(&python, &path)?, &target, "handshake")?;
    assert_eq!((count, p99), (n, lower));
    Ok(())
}
