//! Recommended raft timing as it is written.

use serde::Serialize;

use super::measure_name;
use crate::measure::micros;
use crate::verdict::{RULE, Recommendation};

/// Heartbeat interval and election timeout for what was measured, in the JSON shape.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecommendationReport {
    /// For `--heartbeat-interval`, microseconds.
    pub heartbeat_us: u64,
    /// For `--election-timeout`, microseconds.
    pub election_us: u64,
    /// The settings in use, or taken to be.
    pub today: TimingReport,
    /// The farthest member, which it is made for.
    pub target: String,
    /// The measure its RTT comes from.
    pub measure: &'static str,
    /// Samples.
    pub n: u64,
    /// Its median RTT, microseconds.
    pub median_us: u64,
    /// Lower bound of the median; absent where there are too few samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower_us: Option<u64>,
    /// Upper bound of the median; absent where there are too few samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upper_us: Option<u64>,
    /// The RTT that is hardly ever exceeded, microseconds.
    pub tail_us: u64,
    /// Whether etcd accepts such values.
    pub possible: bool,
    /// How they follow from the measurement.
    pub rule: &'static str,
}

/// Raft timing in use.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimingReport {
    /// `--heartbeat-interval`, microseconds.
    pub heartbeat_us: u64,
    /// `--election-timeout`, microseconds.
    pub election_us: u64,
    /// Where the two come from.
    pub source: String,
    /// `fits`, `too_short` or `not_decided`.
    pub heartbeat: &'static str,
    /// The same of the election timeout.
    pub election: &'static str,
}

impl RecommendationReport {
    /// The written form of `made`.
    #[must_use]
    pub fn new(made: &Recommendation) -> Self {
        Self {
            heartbeat_us: micros(made.heartbeat),
            election_us: micros(made.election),
            today: TimingReport {
                heartbeat_us: micros(made.today.heartbeat),
                election_us: micros(made.today.election),
                source: made.today.source.clone(),
                heartbeat: made.heartbeat_fits.name(),
                election: made.election_fits.name(),
            },
            target: made.target.clone(),
            measure: measure_name(made.measure),
            n: made.n,
            median_us: made.median_us,
            lower_us: made.lower_us,
            upper_us: made.upper_us,
            tail_us: made.tail_us,
            possible: made.possible,
            rule: RULE,
        }
    }
}
