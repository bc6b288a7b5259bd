//! What one line of a file says about one measure of one target.

use std::time::{Duration, SystemTime};

use probe_common::cells::Measure;

use crate::histogram::Distribution;
use crate::output::{SAMPLED_MINIMUM, SAMPLED_SMOOTHED, measure_name};

/// Values of one kind at one target in one span of time.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) place: Place,
    pub(super) phase: Option<String>,
    pub(super) start: SystemTime,
    pub(super) length: Duration,
    pub(super) samples: Samples,
}

/// Who measured what where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub(super) values: Values,
    pub(super) role: String,
    pub(super) target: String,
    pub(super) side: String,
    /// As every output writes its name; empty where processes were not told apart or this one was not known.
    pub(super) process: String,
    pub(super) node: String,
}

/// What is known of them.
#[derive(Clone, Debug)]
pub(super) enum Samples {
    /// All of it.
    Whole(Distribution),
    /// Only how many and the extremes, microseconds: a JSON line whose `hdr` field somebody took out. Its quantiles
    /// cannot be merged with others.
    Extremes { count: u64, min: u64, max: u64 },
}

/// What values are. Those of different kinds are never put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Values {
    /// Samples of this measure.
    Samples(Measure),
    /// The kernel's smoothed RTTs of connections that were only looked at once per interval.
    SampledSmoothed,
    /// The smallest RTTs that the kernel remembered of these.
    SampledMinimum,
}

impl Values {
    /// Every kind, in the order of reports.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let samples = Measure::ALL.into_iter().map(Self::Samples);
        samples.chain([Self::SampledSmoothed, Self::SampledMinimum])
    }

    /// The kind of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::all().find(|values| values.name() == name)
    }

    /// Its name in files and reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Samples(measure) => measure_name(measure),
            Self::SampledSmoothed => SAMPLED_SMOOTHED,
            Self::SampledMinimum => SAMPLED_MINIMUM,
        }
    }

    /// What it is, in a few words.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Samples(Measure::Handshake) => "SYN to SYN-ACK: the network alone",
            Self::Samples(Measure::Path) => "joinprobe's own paced segments: the network alone",
            Self::Samples(Measure::Connect) => {
                "connect() to ESTABLISHED, SYN retransmissions included"
            }
            Self::Samples(Measure::Segment) => {
                "all observed segments: with the peer's delayed ACK and thinking time"
            }
            Self::Samples(Measure::SegmentMin) => {
                "smallest segment RTT of each connection and interval: close to the network alone"
            }
            Self::SampledSmoothed => {
                "the kernel's smoothed RTT of connections from before joinprobe, once per interval (sock_diag): estimates, \
                 no samples; judged by no limit"
            }
            Self::SampledMinimum => {
                "the smallest RTT the kernel remembered of these (sock_diag); judged by no limit"
            }
        }
    }
}
