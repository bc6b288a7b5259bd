//! `cargo xtask bench`: what joinprobe costs, beside doing without it and beside what else people would use.
//!
//! Whatever is compared alternates within one run, in rounds whose order turns around each time, so that a machine that
//! grows slower is as unfair to one as to the other. Medians are shown, with the spread of the rounds beside them.

mod callback;
mod figure;
mod libbpf_tools;
mod load;
mod loopback;
mod measured;
mod own_cost;
mod peers;
mod scale;
mod time_to_verdict;
mod unwatched;
mod watched;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use joinprobe_lab::take_turn;

use crate::packages::{self, BENCH, LAB, TESTS};
use crate::privilege::is_root;
use crate::workspace::{joinprobe, say};
use figure::{Figure, Machine};

/// Measures what joinprobe costs: the kernel, everyone else on the host, the watched, and itself.
///
/// Needs root, an otherwise idle machine, and a few minutes. On Debian and Ubuntu, what is missing is installed.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to measure [default: everything that is not in a virtual machine].
    #[arg(value_enum, value_name = "PART")]
    parts: Vec<Part>,
    /// Rounds of whatever is compared.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The kernel side's cost per callback, beside an empty program on the same events.
    Callback,
    /// What connections on other ports pay.
    Unwatched,
    /// What watched connections pay: request-response on loopback, etcd through a link.
    Watched,
    /// Other tools on the same load.
    Peers,
    /// Joinprobe's own time and memory.
    OwnCost,
    /// A preflight's time to its verdict against the round-trip time.
    TimeToVerdict,
    /// Ten thousand connections from two thousand addresses.
    Scale,
    /// libbpf-tools' tcprtt and tcpconnlat, in virtual machines with Debian's kernels: ten minutes.
    LibbpfTools,
}

/// Where everything else runs: on the kernel at hand.
const HERE: [Part; 7] = [
    Part::Callback,
    Part::Unwatched,
    Part::Watched,
    Part::Peers,
    Part::OwnCost,
    Part::TimeToVerdict,
    Part::Scale,
];

/// What every part needs.
struct Bench {
    /// The binary that is measured.
    joinprobe: PathBuf,
    rounds: u32,
}

pub(crate) use libbpf_tools::{GuestArgs, run_as_guest};
pub(crate) use scale::serve_forever;

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    ensure!(is_root(), "the benchmark needs root: run it as root");
    packages::ensure_present(&[LAB, TESTS, BENCH])?;
    let bench = Bench {
        joinprobe: joinprobe()?,
        rounds: args.rounds,
    };
    let _turn = take_turn(&[])?.context("the lab cannot run here")?;
    let parts = if args.parts.is_empty() {
        &HERE[..]
    } else {
        &args.parts
    };
    let mut figures: Vec<Figure> = Vec::new();
    for part in parts {
        say(&format!("measuring: {part:?}"));
        figures.extend(bench.measure(*part)?);
    }
    let machine = Machine::this()?;
    if args.json {
        figure::print_json(&machine, &figures)?;
    } else {
        figure::print_table(&machine, &figures)?;
    }
    let missed = figures.iter().filter(|figure| figure.met() == Some(false));
    Ok(if missed.count() == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

impl Bench {
    fn measure(&self, part: Part) -> Result<Vec<Figure>> {
        match part {
            Part::Callback => callback::measure(self),
            Part::Unwatched => unwatched::measure(self),
            Part::Watched => watched::measure(self),
            Part::Peers => peers::measure(self),
            Part::OwnCost => own_cost::measure(self),
            Part::TimeToVerdict => time_to_verdict::measure(self),
            Part::Scale => scale::measure(self),
            Part::LibbpfTools => libbpf_tools::measure(self),
        }
    }
}

/// Does `without` and `with` this many times, in turning order, and pairs what they return.
fn alternate<T>(
    times: u32,
    mut without: impl FnMut() -> Result<T>,
    mut with: impl FnMut() -> Result<T>,
) -> Result<Vec<(T, T)>> {
    (0..times)
        .map(|round| {
            if round % 2 == 0 {
                let first = without()?;
                Ok((first, with()?))
            } else {
                let second = with()?;
                Ok((without()?, second))
            }
        })
        .collect()
}
