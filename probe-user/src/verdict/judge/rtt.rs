//! Median network RTT against its warn and fail limit.

use probe_common::cells::Measure;

use crate::measure::TargetMeasurement;
use crate::target::{Role, RoleName};
use crate::verdict::limits::{Limit, LimitId, Limits};
use crate::verdict::median::{Median, Samples};
use crate::verdict::policy::Policy;
use crate::verdict::{Finding, FindingState, Unit, text};

/// Ids: `ROLE-path-rtt-median`, `ROLE-handshake-rtt-median`, `ROLE-segment-min-rtt-median` with `etcd` or `apiserver`
/// for ROLE, and `path-above-handshake`.
pub(super) fn findings(
    measured: &TargetMeasurement,
    limits: &Limits,
    policy: &Policy,
) -> Vec<Finding> {
    let check = |measure, samples| median(measured, limits, measure, Median::of(samples, policy));
    let distributions = &measured.distributions;
    let Some(probe) = &measured.probe else {
        let mut findings = vec![
            check(
                Measure::Handshake,
                Samples::Unordered(&distributions.handshake),
            ),
            check(
                Measure::SegmentMin,
                Samples::Unordered(&distributions.segment_min),
            ),
        ];
        settle(&mut findings);
        return findings;
    };
    let path = if probe.path_sequence.is_empty() {
        Samples::Unordered(&distributions.path)
    } else {
        Samples::Ordered(&probe.path_sequence)
    };
    let mut findings = vec![check(Measure::Path, path)];
    if Median::of(path, policy).is_none() && !distributions.handshake.is_empty() {
        // Without pacing the handshakes are all there is.
        findings = vec![check(
            Measure::Handshake,
            Samples::Unordered(&distributions.handshake),
        )];
    }
    findings.extend(discrepancy(measured, Median::of(path, policy)));
    findings
}

/// Where one of two measures of the same distance decides, the other's silence does not leave the run open.
fn settle(findings: &mut [Finding]) {
    let decided = findings.iter().any(|finding| {
        finding.measure.is_some()
            && !matches!(
                finding.state,
                FindingState::Inconclusive | FindingState::Skipped
            )
    });
    if decided {
        for finding in findings {
            if finding.state == FindingState::Inconclusive {
                finding.state = FindingState::NotDecided;
            }
        }
    }
}

struct Words {
    id: &'static str,
    name: &'static str,
}

fn words(role: Role, measure: Measure) -> Words {
    let (id, name) = match (role.is_etcd(), measure) {
        (true, Measure::Path) => ("etcd-path-rtt-median", "path RTT"),
        (true, Measure::Handshake) => ("etcd-handshake-rtt-median", "handshake RTT"),
        (true, _) => (
            "etcd-segment-min-rtt-median",
            "smallest segment RTT per connection",
        ),
        (false, Measure::Path) => ("apiserver-path-rtt-median", "path RTT"),
        (false, Measure::Handshake) => ("apiserver-handshake-rtt-median", "handshake RTT"),
        (false, _) => (
            "apiserver-segment-min-rtt-median",
            "smallest segment RTT per connection",
        ),
    };
    Words { id, name }
}

fn median(
    measured: &TargetMeasurement,
    limits: &Limits,
    measure: Measure,
    median: Option<Median>,
) -> Finding {
    let role = measured.target.spec.role;
    let (warn, fail) = if role.is_etcd() {
        (LimitId::EtcdRttWarn, LimitId::EtcdRttFail)
    } else {
        (LimitId::ApiserverRttWarn, LimitId::ApiserverRttFail)
    };
    let (warn, fail) = (limits.get(warn), limits.get(fail));
    let Words { id, name } = words(role, measure);
    let Some(median) = median else {
        return unmeasured(measured, id, name, measure);
    };
    let (state, limit) = decide(&median, warn, fail);
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
        unit: Unit::Micros,
        source: limit.source.clone(),
        text: sentence(name, &median, state, limit),
        hint: hint(role, state),
    }
}

/// The state, and the limit it is about.
fn decide<'a>(median: &Median, warn: &'a Limit, fail: &'a Limit) -> (FindingState, &'a Limit) {
    let beyond = |limit: &Limit| median.bounds.lower.is_some_and(|lower| lower > limit.value);
    let within = |limit: &Limit| {
        median
            .bounds
            .upper
            .is_some_and(|upper| upper <= limit.value)
    };
    // A warn limit that someone set above the fail limit has nothing left to say.
    let warn = if warn.value > fail.value { fail } else { warn };
    if beyond(fail) {
        (FindingState::Fail, fail)
    } else if !within(fail) {
        (FindingState::Inconclusive, fail)
    } else if beyond(warn) {
        (FindingState::Warn, warn)
    } else if within(warn) {
        (FindingState::Pass, warn)
    } else {
        (FindingState::NotDecided, warn)
    }
}

fn sentence(name: &str, median: &Median, state: FindingState, limit: &Limit) -> String {
    let bounds = match (
        median.bounds.lower.map(text::ms),
        median.bounds.upper.map(text::ms),
    ) {
        (Some(lower), Some(upper)) if lower == upper => format!(", both bounds {lower}"),
        (Some(lower), Some(upper)) => format!(", bounds {lower} to {upper}"),
        (Some(lower), None) => format!(", at least {lower}"),
        (None, Some(upper)) => format!(", at most {upper}"),
        (None, None) => String::new(),
    };
    let measured = format!(
        "median {name} {} (n={}{bounds})",
        text::ms(median.value),
        median.n
    );
    match state {
        FindingState::Pass => format!("{measured} is within the limit of {limit}"),
        FindingState::Warn => format!("{measured} is above the warn limit of {limit}"),
        FindingState::Fail => format!("{measured} is above the fail limit of {limit}"),
        FindingState::NotDecided | FindingState::Inconclusive | FindingState::Skipped => {
            format!("{measured} against {limit}: not decided")
        }
    }
}

fn hint(role: Role, state: FindingState) -> String {
    match (state, role.is_etcd()) {
        (FindingState::Fail, true) => "A member this far away misses heartbeats and provokes elections; a join may leave the cluster without a leader. Move the node closer, or raise --heartbeat-interval and --election-timeout on every member first.",
        (FindingState::Warn, true) => "Heartbeats arrive, with little room for jitter; expect slow writes and now and then an election. Consider a higher --heartbeat-interval and --election-timeout on every member.",
        (FindingState::Fail, false) => "Calls to the API server cannot meet their objective from here, and the join's own waits may run out; use a nearer endpoint or load balancer.",
        (FindingState::Warn, false) => "A fresh call needs about four round trips; expect a slow join and slow controllers on this node.",
        (FindingState::Inconclusive, _) => "The samples lie on both sides of the limit, or are too few. Run again, with a longer --timeout or a higher --max-connections; if it stays so, the path is too close to the limit to rely on.",
        _ => "",
    }
    .to_owned()
}

fn unmeasured(
    measured: &TargetMeasurement,
    id: &'static str,
    name: &'static str,
    measure: Measure,
) -> Finding {
    let failed = measured
        .probe
        .as_ref()
        .is_some_and(|probe| probe.failure.is_some());
    let (state, text) = if measured.probe.is_none() {
        (
            FindingState::Skipped,
            format!("{name}: no connection to measure in this interval"),
        )
    } else if failed {
        (
            FindingState::Skipped,
            format!("{name} was not measured: the probe ended before"),
        )
    } else {
        (
            FindingState::Inconclusive,
            format!("{name} was not measured: no sample was taken"),
        )
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
    (above > 5_000 && above > handshake_us / 4).then(|| Finding {
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
        .hint("If the handshake RTT is what you expect of this path, judge by it; --no-pacing measures without paced segments.")
    })
}
