//! What the observer says about itself.

use probe_common::stats::Stat;

use super::mapped::MappedCells;

/// Where `segment` and `path` samples come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttSource {
    /// The kernel passes each sample (6.10 and kernels with that change).
    Raw,
    /// Computed from the smoothed RTT before and after each sample; equal to the sample.
    Reconstructed,
    /// The kernel's smoothed RTT before each sample: slower to change and narrower than the samples.
    Smoothed,
}

impl RttSource {
    /// `raw`, `reconstructed` or `smoothed`: label and JSON value.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Reconstructed => "reconstructed",
            Self::Smoothed => "smoothed",
        }
    }
}

/// The observer's own counters, all since it was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObserverStats {
    /// Events that found the ring buffer full.
    pub events_lost: u64,
    /// Events left out by the rate limit.
    pub events_suppressed: u64,
    /// Connections that got no slot of their own.
    pub slots_exhausted: u64,
    /// Slots that remote addresses and own probes took.
    pub slots_used: u32,
    /// Connections for which the kernel had no memory to track them.
    pub flows_untracked: u64,
    /// RTT callbacks in which another program had overwritten an argument; the sample was computed around it.
    pub raw_disagreements: u64,
    /// Connections seen on watched ports.
    pub flows_seen: u64,
    /// Connections on watched ports that were there before and are observed.
    pub flows_adopted: u64,
}

pub(super) fn read(cells: &MappedCells, slots_used: u32) -> ObserverStats {
    let stat = |stat: Stat| cells.load(stat as u32);
    ObserverStats {
        events_lost: stat(Stat::EventsLost),
        events_suppressed: stat(Stat::EventsSuppressed),
        slots_exhausted: stat(Stat::SlotsExhausted),
        slots_used,
        flows_untracked: stat(Stat::FlowsUntracked),
        raw_disagreements: stat(Stat::RawDisagreements),
        flows_seen: stat(Stat::FlowsSeen),
        flows_adopted: stat(Stat::FlowsAdopted),
    }
}

/// The source of the samples seen so far; `None` before the first.
pub(super) fn source(cells: &MappedCells) -> Option<RttSource> {
    let seen = |stat: Stat| cells.load(stat as u32) != 0;
    // The least of them, should there ever be two.
    if seen(Stat::SmoothedSeen) {
        Some(RttSource::Smoothed)
    } else if seen(Stat::ReconstructedSeen) {
        Some(RttSource::Reconstructed)
    } else if seen(Stat::RawSeen) {
        Some(RttSource::Raw)
    } else {
        None
    }
}
