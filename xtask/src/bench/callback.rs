//! What one run of the kernel side costs, beside a program that does nothing on the same events.

use std::net::SocketAddr;

use anyhow::Result;
use joinprobe_lab::bpf::{BpfObjects, Cgroup, OtherProgram, RunStats, Statistics};
use joinprobe_lab::{Namespace, scratch_dir};

use super::figure::Figure;
use super::load::{Server, request_response};
use super::measured::Measured;
use super::{Bench, alternate, load};

/// The kernel side's main program.
pub(super) const PROGRAM: &str = "joinprobe_ops";

/// Round trips in each order of the two; each end's sockets call the programs once per round trip.
const ROUND_TRIPS: usize = 20_000;
/// How often a round puts each of the two first: whoever is first meets cold caches, and a machine's mood lasts longer
/// than one go.
const TURNS: u32 = 2;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let namespace = Namespace::create()?;
    let echo = Server::echo(&namespace, 2379)?;
    let folder = scratch_dir()?;
    let both = Both {
        bench,
        namespace: &namespace,
        server: echo.address,
        empty: OtherProgram::load_empty(folder.path())?,
        cgroup: Cgroup::enter()?,
    };
    let _statistics = Statistics::on()?;
    let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.rounds {
        let (mut mine, mut its) = (RunStats::default(), RunStats::default());
        for turn in alternate(TURNS, || both.measure(true), || both.measure(false))? {
            for (of_ours, of_empty) in [turn.0, turn.1] {
                mine = mine.and(of_ours);
                its = its.and(of_empty);
            }
        }
        let (mine, its) = (mine.mean_nanoseconds(), its.mean_nanoseconds());
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

/// The kernel side and the empty program on the same events.
struct Both<'a> {
    bench: &'a Bench,
    namespace: &'a Namespace,
    server: SocketAddr,
    empty: OtherProgram,
    cgroup: Cgroup,
}

impl Both<'_> {
    /// What the kernel side's runs cost, and the empty program's. Programs run in the order of their attaching.
    fn measure(&self, empty_first: bool) -> Result<(RunStats, RunStats)> {
        let watch = || Measured::watch_cgroup(self.namespace, &self.bench.joinprobe, &self.cgroup);
        let attach = || self.empty.attach(self.cgroup.path(), true);
        let (watch, _attached) = if empty_first {
            let attached = attach()?;
            (watch()?, attached)
        } else {
            (watch()?, attach()?)
        };
        let program = BpfObjects::of(watch.pid())?.program_named(PROGRAM)?;
        let other = self.empty.id()?;
        // The first samples of a connection and cold caches are not what a long run costs.
        request_response(self.namespace, self.server, 1, load::WARM_UP)?;
        let before = (RunStats::of(program)?, RunStats::of(other)?);
        request_response(self.namespace, self.server, 1, ROUND_TRIPS)?;
        Ok((
            RunStats::of(program)?.since(before.0),
            RunStats::of(other)?.since(before.1),
        ))
    }
}
