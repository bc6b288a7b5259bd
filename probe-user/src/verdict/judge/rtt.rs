//! Median network RTT against its warn and fail limit.

use probe_common::cells::Measure;

use super::{Rules, rtt_text};
use crate::measure::TargetMeasurement;
use crate::target::RoleName;
use crate::verdict::bounds::samples_needed;
use crate::verdict::limits::{Limit, LimitId};
use crate::verdict::median::{Median, Samples};
use crate::verdict::{Finding, FindingState, Policy, Unit, WarnFail, text};

/// Ids: `ROLE-path-rtt-median`, `ROLE-handshake-rtt-median`, `ROLE-segment-min-rtt-median` with `etcd` or `apiserver`
/// for ROLE, and `path-above-handshake`.
pub(super) fn findings(measured: &TargetMeasurement, rules: &mut Rules<'_>) -> Vec<Finding> {
    let distributions = &measured.distributions;
    let handshake = Samples::Unordered(&distributions.handshake);
    if measured.probe.is_none() {
        return watched(measured, rules);
    }
    let path = Samples::path(measured);
    if path.is_empty() && !handshake.is_empty() {
        // Without pacing the handshakes are all there is.
        return vec![median(measured, rules, Measure::Handshake, handshake, true)];
    }
    let mut findings = vec![median(measured, rules, Measure::Path, path, true)];
    findings.extend(discrepancy(measured, Median::of(path, rules.policy)));
    findings
}

/// Watched traffic has two measures of the same distance: where one decides, the other's silence does not leave the
/// run open.
fn watched(measured: &TargetMeasurement, rules: &mut Rules<'_>) -> Vec<Finding> {
    let distributions = &measured.distributions;
    let samples = [
        (Measure::Handshake, &distributions.handshake),
        (Measure::SegmentMin, &distributions.segment_min),
    ];
    let mut judge = |open: bool| {
        samples.map(|(measure, samples)| {
            median(measured, rules, measure, Samples::Unordered(samples), open)
        })
    };
    let findings = judge(true);
    let decided = findings.iter().any(|finding| {
        !matches!(
            finding.state,
            FindingState::Inconclusive | FindingState::Skipped
        )
    });
    if decided { judge(false) } else { findings }.into()
}

fn id(etcd: bool, measure: Measure) -> &'static str {
    match (etcd, measure) {
        (true, Measure::Path) => "etcd-path-rtt-median",
        (true, Measure::Handshake) => "etcd-handshake-rtt-median",
        (true, _) => "etcd-segment-min-rtt-median",
        (false, Measure::Path) => "apiserver-path-rtt-median",
        (false, Measure::Handshake) => "apiserver-handshake-rtt-median",
        (false, _) => "apiserver-segment-min-rtt-median",
    }
}

/// `open`: whether an undecided fail limit leaves the run open.
fn median(
    measured: &TargetMeasurement,
    rules: &mut Rules<'_>,
    measure: Measure,
    samples: Samples<'_>,
    open: bool,
) -> Finding {
    let role = measured.target.spec.role;
    let id = id(role.is_etcd(), measure);
    let (warn, fail) = if role.is_etcd() {
        (LimitId::EtcdRttWarn, LimitId::EtcdRttFail)
    } else {
        (LimitId::ApiserverRttWarn, LimitId::ApiserverRttFail)
    };
    let (warn, fail) = (rules.limits.get(warn), rules.limits.get(fail));
    let Some(mut median) = Median::of(samples, rules.policy) else {
        return unmeasured(measured, id, measure);
    };
    median.bounds = rules.known.narrow(id, median.bounds);
    let (state, limit) = decide(&median, warn, fail, open);
    let needs = needs(&median, state, rules.policy);
    Finding {
        id,
        state,
        measure: Some(measure),
        quantile: Some(0.5),
        n: median.n,
        value: Some(median.value),
        lower: median.bounds.lower,
        upper: median.bounds.upper,
        limit: Some(limit.value),
        limits: WarnFail::both(warn.value, fail.value),
        needs,
        unit: Unit::Micros,
        source: limit.source.clone(),
        text: rtt_text::sentence(measure, &median, samples, state, limit, needs),
        hint: rtt_text::hint(role, state, measured.probe.is_some()).to_owned(),
    }
}

/// Samples that are certainly too few below it; `None` when it is decided, or there are as many and they do not agree.
fn needs(median: &Median, state: FindingState, policy: &Policy) -> Option<u64> {
    let least = samples_needed(0.5, 1.0 - policy.alpha());
    let open = matches!(state, FindingState::Inconclusive | FindingState::NotDecided);
    (open && median.n < least).then_some(least)
}

/// The state, and the limit it is about.
fn decide<'a>(
    median: &Median,
    warn: &'a Limit,
    fail: &'a Limit,
    open: bool,
) -> (FindingState, &'a Limit) {
    let bounds = median.bounds;
    let beyond = |limit: &Limit| bounds.lower.is_some_and(|lower| lower > limit.value);
    let within = |limit: &Limit| bounds.upper.is_some_and(|upper| upper <= limit.value);
    // A warn limit that someone set above the fail limit has nothing left to say.
    let warn = if warn.value > fail.value { fail } else { warn };
    if beyond(fail) {
        (FindingState::Fail, fail)
    } else if open && !within(fail) {
        (FindingState::Inconclusive, fail)
    } else if beyond(warn) {
        (FindingState::Warn, warn)
    } else if within(warn) {
        (FindingState::Pass, warn)
    } else {
        (FindingState::NotDecided, warn)
    }
}

fn unmeasured(measured: &TargetMeasurement, id: &'static str, measure: Measure) -> Finding {
    let name = rtt_text::name(measure);
    let (state, text) = match &measured.probe {
        None => (
            FindingState::Skipped,
            format!("{name}: no connection to measure it on"),
        ),
        Some(probe) if probe.failure.is_some() => (
            FindingState::Skipped,
            format!("{name} was not measured: the probe ended before"),
        ),
        Some(_) => (
            FindingState::Inconclusive,
            format!("{name} was not measured: no sample was taken"),
        ),
    };
    Finding {
        measure: Some(measure),
        quantile: Some(0.5),
        unit: Unit::Micros,
        ..Finding::plain(id, state, text)
    }
}

/// Acknowledgements that the peer delays make the path look longer than it is; the handshake has none.
fn discrepancy(measured: &TargetMeasurement, path: Option<Median>) -> Option<Finding> {
    let handshake = &measured.distributions.handshake;
    let path = path?;
    if handshake.is_empty() {
        return None;
    }
    let handshake_us = handshake.lowest_equivalent(handshake.value_at_quantile(0.5));
    let above = path.value.saturating_sub(handshake_us);
    (above > 5_000 && above > handshake_us / 4).then(|| {
        Finding {
            measure: Some(Measure::Path),
            quantile: Some(0.5),
            n: path.n,
            value: Some(path.value),
            unit: Unit::Micros,
            ..Finding::plain(
                "path-above-handshake",
                FindingState::NotDecided,
                format!(
                    "median path RTT {} is well above the handshake RTT {}: the peer may delay acknowledgements, or the path slowed down meanwhile",
                    text::ms(path.value),
                    text::ms(handshake_us)
                ),
            )
        }
        .hint("If the handshake RTT is what you expect of this path, judge by it; --no-pacing measures without paced segments.")
    })
}
