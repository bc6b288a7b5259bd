//! What connections on other ports pay.

use anyhow::Result;
use joinprobe_lab::Namespace;
use joinprobe_lab::bpf::{BpfObjects, Cgroup, RunStats, Statistics};

use super::callback::PROGRAM;
use super::figure::Figure;
use super::load::{Server, connect_close, request_response};
use super::measured::Measured;
use super::{Bench, alternate};

/// No port that is watched.
const PORT: u16 = 9999;
/// Round trips whose program runs are counted.
const ROUND_TRIPS: u32 = 5_000;
/// Connections of each round.
const CONNECTIONS: usize = 40_000;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let namespace = Namespace::create()?;
    let echo = Server::echo(&namespace, PORT)?;
    let runs = runs_per_round_trip(bench, &namespace, &echo)?;
    echo.stop(&namespace);
    let closing = Server::closing(&namespace, PORT)?;
    let pairs = alternate(
        bench.rounds,
        || connect_close(&namespace, closing.address, CONNECTIONS),
        || {
            let _watch = Measured::watch(&namespace, &bench.joinprobe, &[])?;
            connect_close(&namespace, closing.address, CONNECTIONS)
        },
    )?;
    closing.stop(&namespace);
    let (without, with): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let ratios = pairs.iter().map(|(without, with)| with / without).collect();
    Ok(vec![
        Figure::once(
            format!("program runs per round trip, other port ({ROUND_TRIPS} round trips)"),
            "",
            runs,
        )
        .at_most(0.0),
        Figure::new("connections on another port, without", "1/s", without),
        Figure::new("connections on another port, with watch", "1/s", with),
        Figure::new("connections on another port, with / without", "", ratios).at_least(0.98),
    ])
}

/// Opening and closing costs a few runs; what is left when they are taken off is the traffic's.
fn runs_per_round_trip(bench: &Bench, namespace: &Namespace, echo: &Server) -> Result<f64> {
    let _statistics = Statistics::on()?;
    let cgroup = Cgroup::enter()?;
    let watch = Measured::watch_cgroup(namespace, &bench.joinprobe, &cgroup)?;
    let program = BpfObjects::of(watch.pid())?.program_named(PROGRAM)?;
    let runs_of = |round_trips: u32| -> Result<f64> {
        let before = RunStats::of(program)?;
        request_response(namespace, echo.address, 1, usize::try_from(round_trips)?)?;
        let runs = RunStats::of(program)?.since(before).runs;
        Ok(f64::from(u32::try_from(runs)?))
    };
    let opening = runs_of(1)?;
    Ok((runs_of(ROUND_TRIPS)? - opening).max(0.0) / f64::from(ROUND_TRIPS - 1))
}
