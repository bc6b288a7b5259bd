//! Judges one target.

mod connect;
mod dns;
mod etcd;
mod loss;
mod reach;
mod rtt;
mod rtt_text;
mod segments;
#[cfg(test)]
mod tests;

use super::decisions::Known;
use super::limits::Limits;
use super::policy::Policy;
use super::{Finding, FindingState, TargetVerdict, Verdict};
use crate::measure::TargetMeasurement;

/// What a target is judged by.
#[derive(Debug)]
pub(super) struct Rules<'a> {
    pub(super) limits: &'a Limits,
    pub(super) policy: &'a Policy,
    /// What earlier looks at this target decided.
    pub(super) known: &'a mut Known,
}

/// Judges what was measured at one target, by this one look; [`super::Decisions`] is for several.
///
/// Findings come in reading order: can it be reached, how far is it, is anything lost, is the server slow. Worse
/// measurements never give a better verdict.
#[must_use]
pub fn judge_target(
    measured: &TargetMeasurement,
    limits: &Limits,
    policy: &Policy,
) -> TargetVerdict {
    judge(
        measured,
        &mut Rules {
            limits,
            policy,
            known: &mut Known::default(),
        },
    )
}

pub(super) fn judge(measured: &TargetMeasurement, rules: &mut Rules<'_>) -> TargetVerdict {
    let mut findings = reach::findings(measured);
    findings.extend(dns::findings(measured));
    findings.extend(segments::findings(measured));
    findings.extend(connect::findings(measured, rules));
    findings.extend(rtt::findings(measured, rules));
    findings.extend(loss::findings(measured, rules));
    findings.extend(etcd::findings(measured, rules));
    TargetVerdict {
        verdict: worst(&findings),
        findings,
    }
}

/// Whether another connection may decide a fail limit that is still open.
#[must_use]
pub fn needs_more(verdict: &TargetVerdict) -> bool {
    verdict.verdict == Verdict::Inconclusive
}

/// The worst that any finding amounts to.
pub(super) fn worst(findings: &[Finding]) -> Verdict {
    findings
        .iter()
        .map(|finding| match finding.state {
            FindingState::Pass | FindingState::NotDecided | FindingState::Skipped => Verdict::Pass,
            FindingState::Warn => Verdict::Warn,
            FindingState::Inconclusive => Verdict::Inconclusive,
            FindingState::Fail => Verdict::Fail,
        })
        .max()
        .unwrap_or(Verdict::Pass)
}
