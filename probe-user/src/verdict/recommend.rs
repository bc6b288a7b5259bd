//! Raft timing for the measured network.

use std::time::Duration;

use super::bounds::quantile_bounds;
use super::median::{Median, Samples};
use super::policy::Policy;
use super::text;
use super::timing::Timing;
use super::{Finding, FindingState, Unit};
use crate::histogram::{self, Distribution};
use crate::measure::{TargetMeasurement, micros};
use crate::target::{RoleName, Side};
use probe_common::cells::Measure;

/// etcd refuses an election timeout below five heartbeats.
const HEARTBEATS_PER_ELECTION: u64 = 5;
/// etcd refuses an election timeout above 50 s.
const LONGEST_ELECTION_US: u64 = 50_000_000;
/// etcd's defaults; lower ones gain nothing that a healthy cluster would notice.
const SHORTEST_HEARTBEAT_US: u64 = 100_000;
const SHORTEST_ELECTION_US: u64 = 1_000_000;

/// How the recommended values follow from what was measured, in words.
pub const RULE: &str = "heartbeat: 2 x the farthest member's median RTT (upper bound), at least 100 ms; election: the \
    longest of 10 x that RTT, 5 heartbeats, 2 heartbeats + tail RTT, and 1000 ms";

/// Whether today's settings fit the measured network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fit {
    /// They do, with confidence.
    Fits,
    /// They are too short, with confidence.
    TooShort,
    /// The samples do not decide.
    NotDecided,
}

impl Fit {
    /// Label and JSON value.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::TooShort => "too_short",
            Self::NotDecided => "not_decided",
        }
    }
}

/// Heartbeat interval and election timeout for the farthest measured member.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommendation {
    /// The settings in use, as far as they are known.
    pub today: Timing,
    /// For `--heartbeat-interval`, the same on every member.
    pub heartbeat: Duration,
    /// For `--election-timeout`, the same on every member.
    pub election: Duration,
    /// The member it is made for: the one with the highest median RTT.
    pub target: String,
    /// The measure its RTT comes from.
    pub measure: Measure,
    /// Samples.
    pub n: u64,
    /// Its median RTT, microseconds.
    pub median_us: u64,
    /// Lower bound of the median, microseconds; `None` where there are too few samples.
    pub lower_us: Option<u64>,
    /// Upper bound of the median, microseconds; `None` where there are too few samples.
    pub upper_us: Option<u64>,
    /// The RTT that is hardly ever exceeded, microseconds: the upper bound of the 99th percentile, or the longest
    /// sample where there are too few for one.
    pub tail_us: u64,
    /// Whether the heartbeat in use is long enough.
    pub heartbeat_fits: Fit,
    /// Whether the election timeout in use is long enough.
    pub election_fits: Fit,
    /// Whether the recommended values are ones etcd accepts: beyond 50 s it does not.
    pub possible: bool,
    /// Everything above in sentences, id `etcd-timing`.
    pub finding: Finding,
}

/// Recommends raft timing from what was measured at the etcd members; `None` when no RTT of a member was measured.
///
/// Heartbeat: twice the median RTT, so that the RTT stays within the warn limit of half a heartbeat. Election timeout:
/// the longest of ten times the median RTT (the tuning guide), five heartbeats (etcd accepts no less), and two
/// heartbeats plus the tail, so that one lost heartbeat and a slow one are no election. For the median its upper
/// bound is used. Rounded up to 10 and 100 ms, and never below etcd's defaults.
#[must_use]
pub fn recommend(
    targets: &[TargetMeasurement],
    timing: &Timing,
    policy: &Policy,
) -> Option<Recommendation> {
    let (farthest, rtt) = targets
        .iter()
        .filter(|measured| measured.side == Side::Client && measured.target.spec.role.is_etcd())
        .filter_map(|measured| Some((measured, rtt_of(measured, policy)?)))
        .max_by_key(|(_, rtt)| rtt.reckoned())?;
    let heartbeat = round_up(rtt.reckoned().saturating_mul(2), 10_000).max(SHORTEST_HEARTBEAT_US);
    let needed = [
        rtt.reckoned().saturating_mul(10),
        heartbeat.saturating_mul(HEARTBEATS_PER_ELECTION),
        heartbeat.saturating_mul(2).saturating_add(rtt.tail_us),
        SHORTEST_ELECTION_US,
    ];
    let election = round_up(needed.into_iter().max().unwrap_or(0), 100_000);
    let fit = |longest_rtt: u64| {
        let bounds = rtt.median.bounds;
        if bounds.lower.is_some_and(|lower| lower > longest_rtt) {
            Fit::TooShort
        } else if bounds.upper.is_some_and(|upper| upper <= longest_rtt) {
            Fit::Fits
        } else {
            Fit::NotDecided
        }
    };
    let mut made = Recommendation {
        today: timing.clone(),
        heartbeat: Duration::from_micros(heartbeat),
        election: Duration::from_micros(election),
        target: farthest.target.to_string(),
        measure: rtt.measure,
        n: rtt.median.n,
        median_us: rtt.median.value,
        lower_us: rtt.median.bounds.lower,
        upper_us: rtt.median.bounds.upper,
        tail_us: rtt.tail_us,
        heartbeat_fits: fit(micros(timing.heartbeat) / 2),
        election_fits: fit(micros(timing.election) / 10),
        possible: election <= LONGEST_ELECTION_US,
        finding: Finding::plain("etcd-timing", FindingState::NotDecided, ""),
    };
    made.finding = finding(&made, timing);
    Some(made)
}

struct Rtt {
    measure: Measure,
    median: Median,
    tail_us: u64,
}

impl Rtt {
    /// The RTT that settings are made for: the bound where there is one, so that they fit with confidence.
    fn reckoned(&self) -> u64 {
        self.median.bounds.upper.unwrap_or(self.median.value)
    }
}

/// The member's network RTT, by the measure that says most about it.
fn rtt_of(measured: &TargetMeasurement, policy: &Policy) -> Option<Rtt> {
    let distributions = &measured.distributions;
    let path = Samples::path(measured);
    let (measure, samples) = if !path.is_empty() {
        (Measure::Path, path)
    } else if distributions.segment_min.len() > distributions.handshake.len() {
        (
            Measure::SegmentMin,
            Samples::Unordered(&distributions.segment_min),
        )
    } else {
        (
            Measure::Handshake,
            Samples::Unordered(&distributions.handshake),
        )
    };
    Some(Rtt {
        measure,
        median: Median::of(samples, policy)?,
        tail_us: match samples {
            Samples::Ordered(sequence) => tail(&histogram::of_sequence(sequence), policy),
            Samples::Unordered(distribution) => tail(distribution, policy),
        },
    })
}

fn tail(samples: &Distribution, policy: &Policy) -> u64 {
    quantile_bounds(samples, 0.99, policy.alpha(), policy.alpha())
        .upper
        .unwrap_or_else(|| samples.max())
}

fn round_up(value: u64, step: u64) -> u64 {
    value.div_ceil(step).saturating_mul(step)
}

fn finding(made: &Recommendation, timing: &Timing) -> Finding {
    let today = format!(
        "heartbeat {} and election timeout {} ({})",
        text::ms(micros(timing.heartbeat)),
        text::ms(micros(timing.election)),
        timing.source
    );
    let advice = format!(
        "--heartbeat-interval={} --election-timeout={}",
        made.heartbeat.as_millis(),
        made.election.as_millis()
    );
    let recommended = format!(
        "recommended: {} and {}",
        text::ms(micros(made.heartbeat)),
        text::ms(micros(made.election))
    );
    let rtt = format!(
        "a median RTT of {} to {} (n={}, {})",
        text::ms(made.median_us),
        made.target,
        made.n,
        made.upper_us.map_or_else(
            || "too few samples to bound it".to_owned(),
            |upper| format!("at most {}", text::ms(upper))
        )
    );
    // Members are not to be restarted for what they have.
    let longer = made.heartbeat > timing.heartbeat || made.election > timing.election;
    let (state, text, hint) = match (made.heartbeat_fits, made.election_fits) {
        (Fit::Fits, Fit::Fits) => (
            FindingState::Pass,
            format!("{today} fit {rtt}; {recommended}"),
            String::new(),
        ),
        (heartbeat, election) => {
            let short = heartbeat == Fit::TooShort || election == Fit::TooShort;
            (
                if short {
                    FindingState::Warn
                } else {
                    FindingState::NotDecided
                },
                if short {
                    format!("{today} are too short for {rtt}; {recommended}")
                } else {
                    format!("whether {today} fit {rtt} is not decided; {recommended}")
                },
                if !longer {
                    String::new()
                } else if made.possible {
                    format!("Set {advice} on every member, one member at a time, before the join.")
                } else {
                    format!(
                        "This network would need {advice}, and etcd accepts no election timeout above 50 s: the member is too far away."
                    )
                },
            )
        }
    };
    Finding {
        measure: Some(made.measure),
        quantile: Some(0.5),
        n: made.n,
        value: Some(made.median_us),
        lower: made.lower_us,
        upper: made.upper_us,
        limit: Some((micros(timing.heartbeat) / 2).min(micros(timing.election) / 10)),
        unit: Unit::Micros,
        source: RULE.to_owned(),
        hint,
        ..Finding::plain("etcd-timing", state, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::testing;

    fn for_member(path_us: &[u32]) -> Recommendation {
        recommend(
            &[testing::etcd(&[1_000; 15]), testing::etcd(path_us)],
            &Timing::default(),
            &Policy::default(),
        )
        .unwrap()
    }

    fn settings(made: &Recommendation) -> (u128, u128) {
        (made.heartbeat.as_millis(), made.election.as_millis())
    }

    #[test]
    fn defaults_fit_a_near_network() {
        let made = for_member(&[10_000; 15]);
        assert_eq!(settings(&made), (100, 1000));
        assert_eq!(
            (made.heartbeat_fits, made.election_fits),
            (Fit::Fits, Fit::Fits)
        );
        assert_eq!(made.finding.state, FindingState::Pass);
        assert_eq!(
            made.finding.text,
            "heartbeat 100 ms and election timeout 1000 ms (etcd defaults) fit a median RTT of 10 ms to 10.1.0.2:2379 (n=15, at most 10 ms); recommended: 100 ms and 1000 ms"
        );
    }

    #[test]
    fn a_far_member_needs_longer_ones() {
        let made = for_member(&[130_000; 15]);
        assert_eq!(settings(&made), (260, 1300));
        assert_eq!(
            (made.heartbeat_fits, made.election_fits),
            (Fit::TooShort, Fit::TooShort)
        );
        assert_eq!(
            made.finding.hint,
            "Set --heartbeat-interval=260 --election-timeout=1300 on every member, one member at a time, before the join."
        );
        let made = for_member(&[70_000; 15]);
        assert_eq!(
            (made.heartbeat_fits, made.election_fits),
            (Fit::TooShort, Fit::Fits)
        );
    }

    #[test]
    fn a_long_tail_lengthens_the_election_timeout() {
        let mut samples = [70_000; 15];
        samples[7] = 900_000;
        let made = for_member(&samples);
        assert_eq!(settings(&made), (140, 1200), "{made:?}");
    }

    #[test]
    fn recommended_settings_fit_by_the_same_rule() {
        for rtt in [1_000, 49_000, 51_000, 99_000, 333_333, 4_000_000] {
            let member = [testing::etcd(&[rtt; 15])];
            let made = recommend(&member, &Timing::default(), &Policy::default()).unwrap();
            let adopted = Timing {
                heartbeat: made.heartbeat,
                election: made.election,
                source: "adopted".to_owned(),
            };
            let again = recommend(&member, &adopted, &Policy::default()).unwrap();
            assert_eq!(
                (again.heartbeat_fits, again.election_fits),
                (Fit::Fits, Fit::Fits)
            );
            assert_eq!(settings(&again), settings(&made));
        }
    }

    #[test]
    fn too_far_and_unmeasured_are_said() {
        let made = for_member(&[6_000_000; 15]);
        assert!(!made.possible);
        assert!(
            made.finding.hint.contains("too far away"),
            "{}",
            made.finding.hint
        );
        assert_eq!(
            recommend(
                &[testing::etcd(&[])],
                &Timing::default(),
                &Policy::default()
            ),
            None
        );
    }
}
