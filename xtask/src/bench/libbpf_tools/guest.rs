//! What happens inside a virtual machine: the same load for one tool after the other, in alternating rounds.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use joinprobe_lab::Namespace;
use joinprobe_lab::bpf::Statistics;
use joinprobe_lab::programs::locate;

use super::super::figure::Figure;
use super::super::load::{Server, connect_close, request_response};
use super::super::measured::{self, Measured, Used};
use super::{FAILURE, FIGURE};

/// Histogram of the smoothed RTT at every segment that an established socket receives.
pub(super) const TCPRTT: &str = "tcprtt";
/// A line for each connection: how long its handshake took.
pub(super) const TCPCONNLAT: &str = "tcpconnlat";

const PORT: u16 = 2379;
const ROUND_TRIPS: usize = 20_000;
/// Each end of a connection has its answer once per round trip.
const SAMPLES: u64 = 2 * ROUND_TRIPS as u64;
const CONNECTIONS: usize = 1_000;

/// A benchmark's part inside a virtual machine.
#[derive(clap::Args)]
pub(crate) struct GuestArgs {
    /// Rounds of whatever is compared
    #[arg(long)]
    rounds: u32,
}

/// What a tool came to on a load.
struct Outcome {
    used: Used,
    got: u64,
}

/// Seconds of what was used.
type Seconds = fn(Used) -> f64;

/// Measures and prints figures for the host to pick out of the console.
///
/// # Errors
/// There is no namespace, or nothing can be printed.
pub(crate) fn run_as_guest(args: &GuestArgs) -> Result<ExitCode> {
    let namespace = Namespace::create()?;
    let _statistics = Statistics::on()?;
    let mut out = std::io::stdout().lock();
    for measured in [
        round_trips(&namespace, args.rounds).context(TCPRTT),
        connections(&namespace, args.rounds).context(TCPCONNLAT),
    ] {
        match measured {
            Ok(figures) => {
                for figure in figures {
                    writeln!(out, "{FIGURE}{}", serde_json::to_string(&figure)?)?;
                }
            }
            // A tool that this kernel does not run is no reason to leave out the other.
            Err(error) => writeln!(out, "{FAILURE}{}", format!("{error:#}").replace('\n', " "))?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn round_trips(namespace: &Namespace, rounds: u32) -> Result<Vec<Figure>> {
    let echo = Server::echo(namespace, PORT)?;
    let load = || request_response(namespace, echo.address, 1, ROUND_TRIPS);
    let ours = || {
        watch(namespace, &load, |verdict| {
            let sides = ["client", "server"];
            sides
                .map(|side| measured::sum(verdict, side, "/segment/count"))
                .iter()
                .sum()
        })
    };
    let theirs = || {
        tool(namespace, TCPRTT, &load, |said| {
            said.lines().filter_map(counted).sum()
        })
    };
    let pairs = super::super::alternate(rounds, theirs, ours)?;
    echo.stop(namespace);
    Ok(figures(
        TCPRTT,
        &pairs,
        "100,000 round trips",
        100_000.0 / count(ROUND_TRIPS as u64),
        &format!("samples got of {SAMPLES}"),
    ))
}

fn connections(namespace: &Namespace, rounds: u32) -> Result<Vec<Figure>> {
    let closing = Server::closing(namespace, PORT)?;
    let load = || connect_close(namespace, closing.address, CONNECTIONS).map(drop);
    let ours = || {
        watch(namespace, &load, |verdict| {
            measured::sum(verdict, "client", "/handshake/count")
        })
    };
    let port = format!(" {PORT} ");
    let theirs = || {
        tool(namespace, TCPCONNLAT, &load, |said| {
            said.lines().filter(|line| line.contains(&port)).count() as u64
        })
    };
    let pairs = super::super::alternate(rounds, theirs, ours)?;
    closing.stop(namespace);
    Ok(figures(
        TCPCONNLAT,
        &pairs,
        "1,000 connections",
        1_000.0 / count(CONNECTIONS as u64),
        &format!("handshakes got of {CONNECTIONS}"),
    ))
}

fn watch(
    namespace: &Namespace,
    load: &impl Fn() -> Result<()>,
    got: impl Fn(&serde_json::Value) -> u64,
) -> Result<Outcome> {
    let joinprobe = locate("joinprobe").context("no joinprobe")?;
    let running = Measured::watch(namespace, &joinprobe, &[])?;
    let used = used_for(&running, load)?;
    let verdict = measured::verdict(&running.stop()?.0)?;
    Ok(Outcome {
        used,
        got: got(&verdict),
    })
}

fn tool(
    namespace: &Namespace,
    name: &str,
    load: &impl Fn() -> Result<()>,
    got: impl Fn(&str) -> u64,
) -> Result<Outcome> {
    let program = locate(name).with_context(|| format!("no {name}"))?;
    let running = Measured::start_loading(namespace, &program, &[])?;
    let used = used_for(&running, load)?;
    let (said, complaints) = running.stop()?;
    let got = got(&said);
    ensure!(got > 0, "it counted nothing: {said} {complaints}");
    Ok(Outcome { used, got })
}

fn used_for(running: &Measured, load: &impl Fn() -> Result<()>) -> Result<Used> {
    let before = running.used()?;
    load()?;
    Ok(running.used()?.since(before))
}

/// Each pair is a tool's outcome and ours.
fn figures(
    tool: &str,
    pairs: &[(Outcome, Outcome)],
    what: &str,
    scale: f64,
    got: &str,
) -> Vec<Figure> {
    let mut figures = Vec::new();
    let theirs: fn(&(Outcome, Outcome)) -> &Outcome = |pair| &pair.0;
    let ours: fn(&(Outcome, Outcome)) -> &Outcome = |pair| &pair.1;
    for (name, pick) in [(tool, theirs), ("joinprobe watch", ours)] {
        let each =
            |value: &dyn Fn(&Outcome) -> f64| pairs.iter().map(|pair| value(pick(pair))).collect();
        figures.push(Figure::new(
            format!("{name}: CPU per {what}, as counted"),
            "ms",
            each(&|outcome| outcome.used.seconds() * 1e3 * scale),
        ));
        figures.push(Figure::new(
            format!("{name}: of which programs in the kernel"),
            "ms",
            each(&|outcome| outcome.used.programs.seconds() * 1e3 * scale),
        ));
        figures.push(Figure::new(
            format!("{name}: {got}"),
            "",
            each(&|outcome| count(outcome.got)),
        ));
    }
    let seconds: [(&str, Seconds); 2] = [
        ("CPU as counted", Used::seconds),
        ("programs in the kernel", |used| used.programs.seconds()),
    ];
    for (name, seconds) in seconds {
        figures.push(Figure::new(
            format!("{name}, {tool} / joinprobe"),
            "",
            pairs
                .iter()
                .map(|(theirs, ours)| seconds(theirs.used) / seconds(ours.used))
                .collect(),
        ));
    }
    figures
}

/// The count of a line such as `     16 -> 31         : 155      |****    |`.
fn counted(line: &str) -> Option<u64> {
    let (range, rest) = line.split_once(" : ")?;
    range.split_once(" -> ")?;
    rest.split_whitespace().next()?.parse().ok()
}

#[allow(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
fn count(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_counted() {
        let line = "         8 -> 15         : 19872    |****************************************|";
        assert_eq!(counted(line), Some(19872));
        assert_eq!(
            counted("     usecs               : count    distribution"),
            None
        );
    }
}
