//! What one run of the kernel side costs, beside a program that does nothing on the same events.

use anyhow::Result;
use joinprobe_lab::bpf::{BpfObjects, Cgroup, OtherProgram, RunStats, Statistics};
use joinprobe_lab::{Namespace, scratch_dir};

use super::figure::Figure;
use super::load::{Server, request_response};
use super::measured::Measured;
use super::{Bench, load};

/// The kernel side's main program.
pub(super) const PROGRAM: &str = "joinprobe_ops";

/// Round trips of each round; each end's sockets call the programs once per round trip.
const ROUND_TRIPS: usize = 20_000;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let namespace = Namespace::create()?;
    let echo = Server::echo(&namespace, 2379)?;
    let folder = scratch_dir()?;
    let empty = OtherProgram::load_empty(folder.path())?;
    let _statistics = Statistics::on()?;
    let cgroup = Cgroup::enter()?;
    let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    // More rounds than elsewhere: which of the two is first decides more than what they do.
    for round in 0..2 * bench.rounds {
        // Programs run in the order of their attaching: each is first in every other round.
        let (watch, _attached);
        if round % 2 == 0 {
            _attached = empty.attach(cgroup.path(), true)?;
            watch = Measured::watch_cgroup(&namespace, &bench.joinprobe, &cgroup)?;
        } else {
            watch = Measured::watch_cgroup(&namespace, &bench.joinprobe, &cgroup)?;
            _attached = empty.attach(cgroup.path(), true)?;
        }
        let program = BpfObjects::of(watch.pid())?.program_named(PROGRAM)?;
        let other = empty.id()?;
        // The first samples of a connection and cold caches are not what a long run costs.
        request_response(&namespace, echo.address, 1, load::WARM_UP)?;
        let before = (RunStats::of(program)?, RunStats::of(other)?);
        request_response(&namespace, echo.address, 1, ROUND_TRIPS)?;
        let mine = RunStats::of(program)?.since(before.0).mean_nanoseconds();
        let its = RunStats::of(other)?.since(before.1).mean_nanoseconds();
        ours.push(mine);
        theirs.push(its);
        ratios.push(mine / its);
    }
    echo.stop(&namespace);
    Ok(vec![
        Figure::new("kernel side, per callback", "ns", ours),
        Figure::new("empty program, per callback", "ns", theirs),
        Figure::new("kernel side / empty program", "", ratios).at_most(2.0),
    ])
}
