//! Other tools that people would use, on the same load.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use joinprobe_lab::Namespace;
use joinprobe_lab::bpf::Statistics;
use joinprobe_lab::programs::locate;

use super::Bench;
use super::figure::Figure;
use super::load::{Server, request_response};
use super::measured::{self, Measured};

/// Round trips of the load, all connections together.
const ROUND_TRIPS: usize = 100_000;
const CONNECTIONS: usize = 4;
/// What can be sampled of them: each end of a connection has its answer once per round trip.
const SAMPLES: f64 = 200_000.0;

/// The kernel's tracepoint fires for every segment that an established socket receives, on the whole host.
const BPFTRACE: &str = "BEGIN { printf(\"ready\\n\"); } \
     tracepoint:tcp:tcp_probe /args->sport == 2379 || args->dport == 2379/ \
     { @samples = count(); @srtt_us = hist(args->srtt); }";

/// It needs the trace file system, which is mounted for it alone.
const START_BPFTRACE: &str = "mount -t debugfs none /sys/kernel/debug; mount -t tracefs none /sys/kernel/tracing; \
     exec bpftrace -e \"$0\" 1>&2";

/// What a tool came to on the load.
struct Outcome {
    /// Seconds on a processor, its kernel programs included.
    seconds: f64,
    samples: f64,
}

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let namespace = Namespace::create()?;
    let echo = Server::echo(&namespace, 2379)?;
    let _statistics = Statistics::on()?;
    let tools: [(&str, Tool); 4] = [
        ("joinprobe watch", watch),
        ("bpftrace on tcp:tcp_probe", bpftrace),
        ("ss -ti at 10 Hz", ss),
        ("tcpdump -w", tcpdump),
    ];
    let mut outcomes: Vec<Vec<Outcome>> = tools.iter().map(|_| Vec::new()).collect();
    for round in 0..bench.rounds {
        let mut order: Vec<usize> = (0..tools.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for tool in order {
            let outcome = tools[tool].1(bench, &namespace, &echo)
                .with_context(|| tools[tool].0.to_owned())?;
            outcomes[tool].push(outcome);
        }
    }
    echo.stop(&namespace);
    let mut figures = Vec::new();
    for ((name, _), outcomes) in tools.iter().zip(&outcomes) {
        let each = |pick: fn(&Outcome) -> f64| outcomes.iter().map(pick).collect();
        figures.push(Figure::new(
            format!("{name}: CPU per 100,000 round trips"),
            "ms",
            each(|outcome| outcome.seconds * 1e3),
        ));
        let got = Figure::new(
            format!("{name}: samples got of 200,000"),
            "",
            each(|outcome| outcome.samples),
        );
        figures.push(if *name == "joinprobe watch" {
            // Each connection's last answer is acknowledged by its end, which is no sample.
            got.at_least(SAMPLES * 0.999)
        } else {
            got
        });
    }
    let per_sample = |outcome: &Outcome| outcome.seconds / outcome.samples;
    let ratios = outcomes[1].iter().zip(&outcomes[0]);
    figures.push(
        Figure::new(
            "CPU per sample, bpftrace / joinprobe",
            "",
            ratios
                .map(|(theirs, ours)| per_sample(theirs) / per_sample(ours))
                .collect(),
        )
        .at_least(2.5),
    );
    Ok(figures)
}

type Tool = fn(&Bench, &Namespace, &Server) -> Result<Outcome>;

fn load(namespace: &Namespace, echo: &Server) -> Result<()> {
    request_response(
        namespace,
        echo.address,
        CONNECTIONS,
        ROUND_TRIPS / CONNECTIONS,
    )?;
    Ok(())
}

fn watch(bench: &Bench, namespace: &Namespace, echo: &Server) -> Result<Outcome> {
    let watch = Measured::watch(namespace, &bench.joinprobe, &["--interval", "1s"])?;
    let before = watch.used()?;
    load(namespace, echo)?;
    let seconds = watch.used()?.since(before).seconds();
    let verdict = measured::verdict(&watch.stop()?.0)?;
    let samples = ["client", "server"].map(|side| measured::sum(&verdict, side, "/segment/count"));
    Ok(Outcome {
        seconds,
        samples: float(samples.iter().sum())?,
    })
}

fn bpftrace(_: &Bench, namespace: &Namespace, echo: &Server) -> Result<Outcome> {
    let tool = Measured::start(
        namespace,
        Path::new("unshare"),
        &[
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            START_BPFTRACE,
            BPFTRACE,
        ],
        "ready",
    )?;
    let before = tool.used()?;
    load(namespace, echo)?;
    let seconds = tool.used()?.since(before).seconds();
    let said = tool.stop()?.1;
    let samples = said
        .lines()
        .find_map(|line| line.strip_prefix("@samples: ")?.trim().parse().ok());
    Ok(Outcome {
        seconds,
        samples: float(samples.with_context(|| format!("no count: {said}"))?)?,
    })
}

fn tcpdump(_: &Bench, namespace: &Namespace, echo: &Server) -> Result<Outcome> {
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
    let seconds = tool.used()?.since(before).seconds();
    let said = tool.stop()?.1;
    let count = |what: &str| {
        said.lines()
            .find_map(|line| line.trim().strip_suffix(what)?.trim().parse().ok())
            .with_context(|| format!("no count: {said}"))
    };
    // A packet each way is one sample; one that the kernel dropped is none.
    let captured: u64 = count("packets captured")?;
    Ok(Outcome {
        seconds,
        samples: float(captured)?,
    })
}

fn ss(_: &Bench, namespace: &Namespace, echo: &Server) -> Result<Outcome> {
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
        let (samples, seconds) = poller.join().map_err(|_| anyhow!("the poller died"))??;
        loaded?;
        Ok(Outcome {
            seconds,
            samples: float(samples)?,
        })
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

fn float(count: u64) -> Result<f64> {
    Ok(f64::from(u32::try_from(count)?))
}
