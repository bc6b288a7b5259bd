//! Other tools that people would use, on the same load.
//!
//! What eBPF programs cost is measured in two ways. The kernel's own count of a program's time
//! (`kernel.bpf_stats_enabled`) includes a bookkeeping that each run pays only while it is on, and leaves out what is done
//! around the program, such as filling in the record of a tracepoint. So [`profile`] asks, with that count off, for all
//! the time that processors spend for the tool.

mod bpftrace;
mod others;
mod profile;

use anyhow::{Context, Result};
use joinprobe_lab::Namespace;
use joinprobe_lab::bpf::Statistics;

use super::Bench;
use super::figure::Figure;
use super::load::{Server, request_response};
use super::measured::{self, Measured, Used};

/// Round trips of the load, all connections together.
const ROUND_TRIPS: usize = 100_000;
const CONNECTIONS: usize = 4;
/// What can be sampled of them: each end of a connection has its answer once per round trip.
const SAMPLES: f64 = 200_000.0;

/// What a tool came to on the load.
struct Outcome {
    used: Used,
    samples: u64,
}

impl Outcome {
    /// Seconds on a processor for each sample, programs in the kernel included as the kernel counts them.
    fn per_sample(&self) -> f64 {
        self.used.seconds() / float(self.samples)
    }
}

type Tool = fn(&Bench, &Namespace, &Server) -> Result<Outcome>;

/// Where tools are in [`TOOLS`].
const WATCH: usize = 0;
const ONE_HISTOGRAM: usize = 1;
const BY_ADDRESS: usize = 2;
const TOOLS: [(&str, Tool); 5] = [
    ("joinprobe watch", watch),
    ("bpftrace, one histogram", bpftrace::one_histogram),
    ("bpftrace, by address and port", bpftrace::by_address),
    ("ss -ti at 10 Hz", others::ss),
    ("tcpdump -w", others::tcpdump),
];

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let namespace = Namespace::create()?;
    let echo = Server::echo(&namespace, 2379)?;
    let mut figures = counted(bench, &namespace, &echo)?;
    figures.extend(profile::measure(bench, &namespace, &echo)?);
    echo.stop(&namespace);
    Ok(figures)
}

/// What the kernel counts.
fn counted(bench: &Bench, namespace: &Namespace, echo: &Server) -> Result<Vec<Figure>> {
    let _statistics = Statistics::on()?;
    let mut outcomes: Vec<Vec<Outcome>> = TOOLS.iter().map(|_| Vec::new()).collect();
    for round in 0..bench.rounds {
        for tool in order(round, TOOLS.len()) {
            let (name, run) = TOOLS[tool];
            outcomes[tool].push(run(bench, namespace, echo).context(name)?);
        }
    }
    let mut figures = Vec::new();
    for (tool, (name, _)) in TOOLS.iter().enumerate() {
        let each = |pick: fn(&Outcome) -> f64| outcomes[tool].iter().map(pick).collect();
        figures.push(Figure::new(
            format!("{name}: CPU per 100,000 round trips, as counted"),
            "ms",
            each(|outcome| outcome.used.seconds() * 1e3),
        ));
        let got = Figure::new(
            format!("{name}: samples got of 200,000"),
            "",
            each(|outcome| float(outcome.samples)),
        );
        figures.push(if tool == WATCH {
            // Each connection's last answer is acknowledged by its end, which is no sample.
            got.at_least(SAMPLES * 0.999)
        } else {
            got
        });
    }
    for tool in [ONE_HISTOGRAM, BY_ADDRESS] {
        let rounds = outcomes[tool].iter().zip(&outcomes[WATCH]);
        figures.push(Figure::new(
            format!("CPU per sample as counted, {} / joinprobe", TOOLS[tool].0),
            "",
            rounds
                .map(|(theirs, ours)| theirs.per_sample() / ours.per_sample())
                .collect(),
        ));
    }
    Ok(figures)
}

/// The order of a round: it turns around each time.
fn order(round: u32, tools: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tools).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

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
    let used = watch.used()?.since(before);
    let verdict = measured::verdict(&watch.stop()?.0)?;
    let samples = ["client", "server"].map(|side| measured::sum(&verdict, side, "/segment/count"));
    Ok(Outcome {
        used,
        samples: samples.iter().sum(),
    })
}

#[allow(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
fn float(count: u64) -> f64 {
    count as f64
}
