//! Tools that are no eBPF programs.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use joinprobe_lab::Namespace;
use joinprobe_lab::programs::locate;

use super::super::Bench;
use super::super::load::Server;
use super::super::measured::{Measured, Used};
use super::{Outcome, load};

pub(super) fn tcpdump(_: &Bench, namespace: &Namespace, echo: &Server) -> Result<Outcome> {
    let program = locate("tcpdump").context("no tcpdump")?;
    let tool = Measured::start(
        namespace,
        &program,
        &[
            "-n",
            "-i",
            "lo",
            "-s",
            "96",
            "-w",
            "/dev/null",
            "tcp port 2379",
        ],
        "listening on",
    )?;
    let before = tool.used()?;
    load(namespace, echo)?;
    let used = tool.used()?.since(before);
    let said = tool.stop()?.1;
    let count = |what: &str| {
        said.lines()
            .find_map(|line| line.trim().strip_suffix(what)?.trim().parse().ok())
            .with_context(|| format!("no count: {said}"))
    };
    // A packet each way is one sample; one that the kernel dropped is none.
    let captured: u64 = count("packets captured")?;
    Ok(Outcome {
        used,
        samples: captured,
    })
}

pub(super) fn ss(_: &Bench, namespace: &Namespace, echo: &Server) -> Result<Outcome> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let poller = scope.spawn(|| -> Result<(u64, f64)> {
            let before = children_seconds()?;
            let mut samples = 0;
            while !done.load(Ordering::Relaxed) {
                let output = namespace.output(
                    Command::new("ss")
                        .args(["-Htin", "( sport = :2379 or dport = :2379 )"])
                        .stdin(Stdio::null()),
                )?;
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                samples += u64::try_from(text.matches(" rtt:").count())?;
                thread::sleep(Duration::from_millis(100));
            }
            Ok((samples, children_seconds()? - before))
        });
        let loaded = load(namespace, echo);
        done.store(true, Ordering::Relaxed);
        let (samples, cpu) = poller.join().map_err(|_| anyhow!("the poller died"))??;
        loaded?;
        let used = Used {
            cpu,
            ..Used::default()
        };
        Ok(Outcome { used, samples })
    })
}

/// Seconds on a processor of this process's ended children (`proc(5)`, cutime and cstime, in ticks of 10 ms).
fn children_seconds() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, rest) = stat.rsplit_once(") ").context("no stat")?;
    let ticks: f64 = rest
        .split(' ')
        .skip(13)
        .take(2)
        .map(|field| field.parse::<f64>().unwrap_or(f64::NAN))
        .sum();
    Ok(ticks / 100.0)
}
