//! The kernel side's samples of one connection, one by one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use joinprobe_lab::capture::Acknowledgement;
use probe_user::bpf::{Observer, ObserverConfig, OwnProbes, RttSource};

/// How long between two looks. Samples come once per round trip; the few that come faster are left out.
const LOOK: Duration = Duration::from_micros(20);
/// How much later than the capture's stamp the kernel may have processed a segment: it waits while the socket is busy.
const SLACK: Duration = Duration::from_millis(5);

/// A sample, and when it was seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// How many there were with it.
    pub(crate) number: u64,
    /// Microseconds.
    pub(crate) value: u32,
    /// When it was not there yet, since the Unix epoch.
    after: Duration,
    /// When it was.
    by: Duration,
}

impl Seen {
    /// The acknowledgement this sample is of: the latest that begins a round trip, or else the latest, of those that
    /// the capture stamped by then. None if that was long before.
    pub(crate) fn acknowledgement<'a>(
        &self,
        sorted: &'a [Acknowledgement],
    ) -> Option<&'a Acknowledgement> {
        let end = sorted.partition_point(|ack| ack.at <= self.by);
        let recent = |ack: &&Acknowledgement| ack.at + SLACK >= self.after;
        let candidates = || {
            sorted
                .get(..end)
                .unwrap_or_default()
                .iter()
                .rev()
                .take_while(recent)
        };
        candidates()
            .find(|ack| ack.first_of_round_trip)
            .or_else(|| candidates().next())
    }
}

/// An observer that is asked for every sample of a connection.
pub(crate) struct Watcher {
    pub(crate) observer: Observer,
    pub(crate) probes: OwnProbes,
    /// The slot of the watched connection.
    pub(crate) slot: u32,
}

impl Watcher {
    pub(crate) fn attach(source: RttSource) -> Result<Self> {
        let mut observer = Observer::attach(&ObserverConfig {
            own_only: true,
            rtt_source: Some(source),
            max_targets: 256,
            ..ObserverConfig::default()
        })?;
        let slot = observer.new_slot().context("no slot")?;
        Ok(Self {
            probes: observer.own_probes(),
            observer,
            slot,
        })
    }
}

/// Looks for new samples in `slot` until `stop`, and once more then.
pub(crate) fn follow(probes: &OwnProbes, slot: u32, stop: &AtomicBool) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut known = 0;
    let mut after = now();
    loop {
        let last = stop.load(Ordering::Acquire);
        let (number, value) = probes.path_progress(slot);
        let by = now();
        // Another may have come between the two reads of it.
        let settled = probes.path_progress(slot) == (number, value);
        if number > known && settled {
            known = number;
            seen.push(Seen {
                number,
                value,
                after,
                by,
            });
        }
        after = by;
        if last {
            return seen;
        }
        thread::sleep(LOOK);
    }
}

fn now() -> Duration {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}
