//! Loss that TCP repaired, and the tail it leaves in ordinary traffic.

use probe_common::cells::Measure;

use super::Rules;
use crate::measure::TargetMeasurement;
use crate::target::RoleName;
use crate::verdict::bounds::{quantile_bounds, rate_bounds, samples_needed};
use crate::verdict::limits::LimitId;
use crate::verdict::{Finding, FindingState, Unit, WarnFail, text};

/// Ids: `retransmit-rate`, `etcd-segment-p99`.
pub(super) fn findings(measured: &TargetMeasurement, rules: &mut Rules<'_>) -> Vec<Finding> {
    let mut findings = vec![retransmits(measured, rules)];
    if measured.target.spec.role.is_etcd() {
        findings.push(segment_p99(measured, rules));
    }
    findings
}

fn retransmits(measured: &TargetMeasurement, rules: &mut Rules<'_>) -> Finding {
    const ID: &str = "retransmit-rate";
    let warn = rules.limits.get(LimitId::RetransmitRateWarn);
    let fail = rules.limits.get(LimitId::RetransmitRateFail);
    let sent_again = measured.counters.retransmits;
    // A retransmission seen before its connection's segments were counted must not make a rate above 1.
    let n = measured.counters.segments_out.max(sent_again);
    if n == 0 {
        return Finding::plain(
            ID,
            FindingState::Skipped,
            "no data segment was counted, so loss was not measured",
        );
    }
    let look = rate_bounds(sent_again, n, rules.policy.alpha());
    let bounds = rules.known.narrow(ID, look);
    let beyond = |limit: u64| bounds.lower.is_some_and(|lower| lower > limit);
    let within = |limit: u64| bounds.upper.is_some_and(|upper| upper <= limit);
    let (state, limit) = if beyond(fail.value) {
        (FindingState::Fail, fail)
    } else if beyond(warn.value) {
        (FindingState::Warn, warn)
    } else if within(warn.value) {
        (FindingState::Pass, warn)
    } else {
        (FindingState::NotDecided, warn)
    };
    let rate = sent_again.saturating_mul(1_000_000) / n;
    let counted = format!(
        "{} of {} retransmitted ({})",
        sent_again,
        text::count(n, "segment"),
        text::percent(rate)
    );
    let text = match state {
        FindingState::Pass => format!("{counted}, within the limit of {limit}"),
        FindingState::Fail => format!("{counted}, above the fail limit of {limit}"),
        FindingState::Warn => format!("{counted}, above the warn limit of {limit}"),
        _ => format!(
            "{counted}: whether the rate is above {limit} is not decided (n={n}, needs {} without loss)",
            samples_needed(1.0 - share(limit.value), rules.policy.confidence)
        ),
    };
    Finding {
        state,
        n,
        value: Some(rate),
        lower: bounds.lower,
        upper: bounds.upper,
        limit: Some(limit.value),
        limits: WarnFail::both(warn.value, fail.value),
        needs: (state == FindingState::NotDecided)
            .then(|| samples_needed(1.0 - share(limit.value), rules.policy.confidence)),
        unit: Unit::PartsPerMillion,
        source: limit.source.clone(),
        hint: match state {
            FindingState::Warn | FindingState::Fail => "TCP repairs the loss and etcd feels it as latency: each lost segment waits at least a round trip and up to 200 ms more. Look for duplex or MTU faults, a saturated link, or a policer.".to_owned(),
            _ => String::new(),
        },
        ..Finding::plain(ID, state, text)
    }
}

#[allow(clippy::cast_precision_loss, reason = "at most a million")]
fn share(parts_per_million: u64) -> f64 {
    (parts_per_million as f64 / 1e6).clamp(1e-6, 0.999_999)
}

fn segment_p99(measured: &TargetMeasurement, rules: &mut Rules<'_>) -> Finding {
    const ID: &str = "etcd-segment-p99";
    let limit = rules.limits.get(LimitId::EtcdSegmentP99Warn);
    let segment = &measured.distributions.segment;
    let n = segment.len();
    if n == 0 {
        return Finding {
            measure: Some(Measure::Segment),
            quantile: Some(0.99),
            ..Finding::plain(
                ID,
                FindingState::Skipped,
                "no ordinary traffic to this member yet, so its 99th percentile was not measured",
            )
        };
    }
    let alpha = rules.policy.alpha();
    let bounds = rules
        .known
        .narrow(ID, quantile_bounds(segment, 0.99, alpha, alpha));
    let value = segment.lowest_equivalent(segment.value_at_quantile(0.99));
    let measured = format!("99th percentile of segment RTT {} (n={n})", text::ms(value));
    let (state, text) = if bounds.lower.is_some_and(|lower| lower > limit.value) {
        (
            FindingState::Warn,
            format!("{measured} is above the warn limit of {limit}"),
        )
    } else if bounds.upper.is_some_and(|upper| upper <= limit.value) {
        (
            FindingState::Pass,
            format!("{measured} is within the limit of {limit}"),
        )
    } else {
        (
            FindingState::NotDecided,
            format!(
                "{measured} against {limit}: not decided (n={n}, needs {})",
                samples_needed(0.99, rules.policy.confidence)
            ),
        )
    };
    Finding {
        measure: Some(Measure::Segment),
        quantile: Some(0.99),
        n,
        value: Some(value),
        lower: bounds.lower,
        upper: bounds.upper,
        limit: Some(limit.value),
        limits: WarnFail::warn(limit.value),
        needs: (state == FindingState::NotDecided)
            .then(|| samples_needed(0.99, rules.policy.confidence)),
        unit: Unit::Micros,
        source: limit.source.clone(),
        hint: if state == FindingState::Warn {
            "One request in a hundred waits this long: queues, loss, delayed acknowledgements, or a member that is slow to answer. Compare with the median path or handshake RTT to tell the network from the member.".to_owned()
        } else {
            String::new()
        },
        ..Finding::plain(ID, state, text)
    }
}
