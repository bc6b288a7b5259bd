//! What one line of a file says about one measure of one target.

use std::time::{Duration, SystemTime};

use probe_common::cells::Measure;

use crate::histogram::Distribution;

/// Samples of one measure at one target in one span of time.
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
    pub(super) measure: Measure,
    pub(super) role: String,
    pub(super) target: String,
    pub(super) side: String,
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

/// The measure of this name.
pub(super) fn measure_of(name: &str) -> Option<Measure> {
    Measure::ALL
        .into_iter()
        .find(|&measure| crate::output::measure_name(measure) == name)
}
