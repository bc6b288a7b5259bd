//! What was measured at one target: the input of the verdict and of every output.

mod counts;
mod sampled;

use std::time::Duration;

pub use counts::{CompactCounts, SlotCounts};
pub use sampled::Sampled;

use crate::histogram::{self, Distribution};
use crate::probe::ProbeReport;
use crate::target::{ProcessName, Side, Target};

/// The distributions of one target. docs/measurements.md explains each; they are never merged.
#[derive(Clone, Debug, PartialEq)]
pub struct Distributions {
    /// SYN to SYN-ACK RTT of connections whose SYN was sent once.
    pub handshake: Distribution,
    /// `connect()` to ESTABLISHED, SYN retransmissions included.
    pub connect: Distribution,
    /// RTT of joinprobe's own paced segments.
    pub path: Distribution,
    /// The kernel's RTT samples of any other segment.
    pub segment: Distribution,
    /// The smallest segment RTT of each connection within one report interval.
    pub segment_min: Distribution,
}

impl Default for Distributions {
    fn default() -> Self {
        Self {
            handshake: histogram::empty(),
            connect: histogram::empty(),
            path: histogram::empty(),
            segment: histogram::empty(),
            segment_min: histogram::empty(),
        }
    }
}

impl Distributions {
    /// Takes in another's samples, each measure's for itself.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.handshake, &other.handshake),
            (&mut self.connect, &other.connect),
            (&mut self.path, &other.path),
            (&mut self.segment, &other.segment),
            (&mut self.segment_min, &other.segment_min),
        ] {
            // Both have the kernel side's range, so adding cannot fail.
            let _ = sum.add(more);
        }
    }
}

/// Counts of one target, all since the observer was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections seen.
    pub opened: u64,
    /// Connections that reached ESTABLISHED.
    pub established: u64,
    /// Connects answered by a RST.
    pub refused: u64,
    /// Connects that ran out of SYN retries.
    pub timed_out: u64,
    /// Connects ended by an ICMP error.
    pub unreachable: u64,
    /// Connects given up by the caller.
    pub abandoned: u64,
    /// Established connections that ended by a RST.
    pub reset: u64,
    /// Connects that failed for a reason this kernel does not tell.
    pub failed_unknown: u64,
    /// SYNs sent again.
    pub syn_retransmits: u64,
    /// Segments sent again after ESTABLISHED.
    pub retransmits: u64,
    /// Data segments sent, retransmissions included.
    pub segments_out: u64,
    /// Established connections that were closed.
    pub closed: u64,
    /// Connections counted in a shared slot because no slot of their own was left.
    pub overflowed: u64,
    /// RTT samples of acknowledged retransmissions.
    pub retransmitted_samples: u64,
    /// RTT samples that could not be reconstructed.
    pub dropped_samples: u64,
    /// Connections that were there before the observer.
    pub adopted: u64,
}

impl Counters {
    /// Takes in another's counts.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.opened, other.opened),
            (&mut self.established, other.established),
            (&mut self.refused, other.refused),
            (&mut self.timed_out, other.timed_out),
            (&mut self.unreachable, other.unreachable),
            (&mut self.abandoned, other.abandoned),
            (&mut self.reset, other.reset),
            (&mut self.failed_unknown, other.failed_unknown),
            (&mut self.syn_retransmits, other.syn_retransmits),
            (&mut self.retransmits, other.retransmits),
            (&mut self.segments_out, other.segments_out),
            (&mut self.closed, other.closed),
            (&mut self.overflowed, other.overflowed),
            (&mut self.retransmitted_samples, other.retransmitted_samples),
            (&mut self.dropped_samples, other.dropped_samples),
            (&mut self.adopted, other.adopted),
        ] {
            *sum += more;
        }
    }
}

/// Whose connections they are on this host, as far as that is told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Opener {
    /// Cookie of the network namespace; 0 while only one is observed or none can be told from another.
    pub netns: u64,
    /// The process that opened them; `None` where processes are not told apart or this one is not known.
    pub process: Option<ProcessName>,
}

/// Everything known about one target, or about one process's connections to it.
#[derive(Clone, Debug)]
pub struct TargetMeasurement {
    /// Who.
    pub target: Target,
    /// Which end this host is.
    pub side: Side,
    /// Whose connections they are.
    pub opener: Opener,
    /// What the kernel measured.
    pub distributions: Distributions,
    /// What the kernel counted.
    pub counters: Counters,
    /// Connections that were there before and are only sampled; `None` where there are none.
    pub sampled: Option<Box<Sampled>>,
    /// What our own connection found; `None` for traffic that was only watched.
    pub probe: Option<ProbeReport>,
}

/// A duration in whole microseconds, the unit of every `_us` field.
#[must_use]
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
