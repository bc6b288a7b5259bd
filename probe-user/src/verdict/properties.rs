//! What must hold for all measurements.

use std::time::Duration;

use proptest::prelude::*;

use super::median::{Median, Samples};
use super::testing::etcd;
use super::{
    Decisions, FindingState, LimitId, Limits, Policy, RunPolicy, TargetVerdict, Timing, Verdict,
    combine, judge_target,
};
use crate::histogram;
use crate::measure::TargetMeasurement;
use crate::probe::{EtcdAnswer, ProbeFailure, Stage};

/// RTTs near the limits, in runs, so that every part of the rule is met: far ones decide without it.
fn path() -> impl Strategy<Value = Vec<u32>> {
    let runs = prop::collection::vec((40_000u32..150_000, 1usize..8), 1..10);
    runs.prop_map(|runs| {
        runs.into_iter()
            .flat_map(|(value, length)| std::iter::repeat_n(value, length))
            .take(48)
            .collect()
    })
}

fn judge(measured: &TargetMeasurement) -> TargetVerdict {
    judge_target(measured, &Limits::default(), &Policy::default())
}

/// How bad a state is; equal for those that do not change a verdict.
fn badness(state: FindingState) -> u8 {
    match state {
        FindingState::Pass | FindingState::NotDecided | FindingState::Skipped => 0,
        FindingState::Warn => 1,
        FindingState::Inconclusive => 2,
        FindingState::Fail => 3,
    }
}

fn worsened(samples: &[u32], by: &[u32]) -> Vec<u32> {
    samples
        .iter()
        .zip(by.iter().cycle())
        .map(|(sample, by)| sample + by)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn longer_samples_never_give_a_better_verdict(
        samples in path(),
        by in prop::collection::vec(prop_oneof![Just(0u32), 0u32..60_000], 1..48),
    ) {
        let (better, worse) = (judge(&etcd(&samples)), judge(&etcd(&worsened(&samples, &by))));
        prop_assert!(worse.verdict >= better.verdict, "{:?} {:?}", better, worse);
    }

    #[test]
    fn bounds_enclose_the_median_and_rise_with_the_samples(
        samples in path(),
        by in prop::collection::vec(0u32..60_000, 1..48),
    ) {
        let of = |samples: &[u32]| Median::of(Samples::Ordered(samples), &Policy::default()).unwrap();
        let (median, above) = (of(&samples), of(&worsened(&samples, &by)));
        prop_assert!(median.bounds.lower.is_none_or(|lower| lower <= median.value));
        prop_assert!(median.bounds.upper.is_none_or(|upper| upper >= median.value));
        prop_assert!(above.bounds.lower.unwrap_or(0) >= median.bounds.lower.unwrap_or(0));
        prop_assert!(above.bounds.upper.unwrap_or(u64::MAX) >= median.bounds.upper.unwrap_or(u64::MAX));
    }

    #[test]
    fn no_count_or_stage_gives_a_better_verdict_by_growing(
        samples in path(),
        (syn, retransmits, segments) in (0u64..3, 0u64..60, 1u64..2_000),
        (tcp_ms, request_ms) in (1u64..2_500, 1u64..2_500),
        (more_syn, more_retransmits) in (0u64..3, 0u64..60),
        (more_tcp_ms, more_request_ms, slower_ms) in (0u64..2_500, 0u64..2_500, 0u32..60),
    ) {
        let measured = |samples: &[u32], syn, retransmits, tcp_ms, request_ms| {
            let mut measured = etcd(samples);
            measured.counters.syn_retransmits = syn;
            measured.counters.retransmits = retransmits;
            measured.counters.segments_out = segments;
            let probe = measured.probe.as_mut().unwrap();
            probe.stages.tcp = Some(Duration::from_millis(tcp_ms));
            probe.stages.request = Some(Duration::from_millis(request_ms));
            probe.etcd = Some(EtcdAnswer { revision: None, member_id: None, result: "ok" });
            measured
        };
        let better = measured(&samples, syn, retransmits, tcp_ms, request_ms);
        let worse = measured(
            // A request makes a round trip, so a longer path makes it longer too.
            &worsened(&samples, &[slower_ms * 1000]),
            syn + more_syn,
            retransmits + more_retransmits,
            tcp_ms + more_tcp_ms,
            request_ms + u64::from(slower_ms) + more_request_ms,
        );
        let (better, worse) = (judge(&better), judge(&worse));
        prop_assert!(worse.verdict >= better.verdict, "{:?} {:?}", better, worse);
        for finding in &better.findings {
            let same = worse.findings.iter().find(|other| other.id == finding.id);
            prop_assert!(
                same.is_none_or(|other| badness(other.state) >= badness(finding.state)),
                "{:?} {:?}", finding, same
            );
        }
    }

    #[test]
    fn watched_traffic_is_monotone_too(
        (handshakes, minima) in (path(), path()),
        by in prop::collection::vec(0u32..60_000, 1..48),
    ) {
        let watched = |handshakes: &[u32], minima: &[u32]| {
            let mut measured = etcd(&[]);
            measured.probe = None;
            measured.distributions.handshake = histogram::of_sequence(handshakes);
            measured.distributions.segment_min = histogram::of_sequence(minima);
            judge(&measured).verdict
        };
        let better = watched(&handshakes, &minima);
        prop_assert!(watched(&worsened(&handshakes, &by), &minima) >= better);
        prop_assert!(watched(&handshakes, &worsened(&minima, &by)) >= better);
    }

    #[test]
    fn a_tighter_limit_never_gives_a_better_verdict(
        samples in path(),
        (fail_us, tighter_us) in (50_000u64..200_000, 0u64..50_000),
    ) {
        let by = |limit: u64| {
            let mut limits = Limits::default();
            limits.set(LimitId::EtcdRttFail, limit, "test");
            judge_target(&etcd(&samples), &limits, &Policy::default()).verdict
        };
        prop_assert!(by(fail_us - tighter_us) >= by(fail_us));
    }

    #[test]
    fn more_confidence_never_decides_more(samples in path(), percent in 60u32..99) {
        let at = |percent: u32| {
            let policy = Policy { confidence: f64::from(percent) / 100.0, ..Policy::default() };
            Median::of(Samples::Ordered(&samples), &policy).unwrap().bounds
        };
        let (surer, less) = (at(99), at(percent));
        prop_assert!(surer.lower.unwrap_or(0) <= less.lower.unwrap_or(0));
        prop_assert!(surer.upper.unwrap_or(u64::MAX) >= less.upper.unwrap_or(u64::MAX));
    }

    #[test]
    fn a_decided_limit_stays_decided(looks in prop::collection::vec(path(), 1..5)) {
        let limits = Limits::default();
        let policy = Policy { looks: 5, ..Policy::default() };
        let mut decisions = Decisions::default();
        let mut taken = Vec::new();
        let mut earlier: Option<TargetVerdict> = None;
        for look in looks {
            taken.extend(look);
            let now = decisions.judge(&etcd(&taken), &limits, &policy);
            if let Some(earlier) = earlier {
                if matches!(earlier.verdict, Verdict::Fail | Verdict::Warn) {
                    prop_assert_eq!(now.verdict, earlier.verdict);
                }
                for (before, now) in earlier.findings.iter().zip(&now.findings) {
                    let decided = matches!(before.state, FindingState::Pass | FindingState::Warn | FindingState::Fail);
                    if before.quantile.is_some() && decided {
                        prop_assert_eq!((before.id, before.state), (now.id, now.state));
                    }
                }
            }
            earlier = Some(now);
        }
    }

    #[test]
    fn a_failed_target_never_makes_a_run_better(samples in path(), allowed in 0u32..3) {
        let with = |targets: Vec<TargetMeasurement>| {
            let judged: Vec<_> = targets.into_iter().map(|measured| {
                let verdict = judge(&measured);
                (measured, verdict)
            }).collect();
            combine(&judged, &RunPolicy { allow_unreachable: allowed, ..RunPolicy::default() }).verdict
        };
        let mut dead = etcd(&[]);
        dead.probe.as_mut().unwrap().failure = Some(ProbeFailure {
            stage: Stage::Tcp,
            result: "timed_out",
            text: "no answer".to_owned(),
        });
        prop_assert!(with(vec![etcd(&samples), dead]) >= with(vec![etcd(&samples)]));
    }

    #[test]
    fn longer_raft_timing_never_gives_a_worse_verdict(samples in path(), factor in 2u32..20) {
        let slow = Limits::from_timing(Timing {
            heartbeat: Duration::from_millis(100) * factor,
            election: Duration::from_secs(1) * factor,
            source: "test".to_owned(),
        });
        let slow = judge_target(&etcd(&samples), &slow, &Policy::default()).verdict;
        prop_assert!(slow <= judge(&etcd(&samples)).verdict);
    }
}

/// Every sequence of up to eleven samples about a limit, each with every single sample worsened.
#[test]
fn every_short_sequence_is_monotone() {
    for n in 1..=11u32 {
        let verdict = |bits: u32| {
            let samples: Vec<u32> = (0..n)
                .map(|i| if bits >> i & 1 == 1 { 120_000 } else { 90_000 })
                .collect();
            let policy = Policy {
                looks: 1,
                targets: 1,
                ..Policy::default()
            };
            judge_target(&etcd(&samples), &Limits::default(), &policy).verdict
        };
        let all: Vec<Verdict> = (0..1 << n).map(verdict).collect();
        for bits in 0..1u32 << n {
            for i in 0..n {
                let worse = bits | 1 << i;
                assert!(
                    all[worse as usize] >= all[bits as usize],
                    "{n} {bits:b} {worse:b}"
                );
            }
        }
    }
}
