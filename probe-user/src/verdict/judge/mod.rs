//! Judges one target.

mod connect;
mod etcd;
mod loss;
mod reach;
mod rtt;
#[cfg(test)]
mod tests;

use super::limits::Limits;
use super::policy::Policy;
use super::{Finding, FindingState, TargetVerdict, Verdict};
use crate::measure::TargetMeasurement;

/// Judges what was measured at one target.
///
/// Findings come in reading order: can it be reached, how far is it, is anything lost, is the server slow. Worse
/// measurements never give a better verdict.
#[must_use]
pub fn judge_target(
    measured: &TargetMeasurement,
    limits: &Limits,
    policy: &Policy,
) -> TargetVerdict {
    let mut findings = reach::findings(measured);
    findings.extend(connect::findings(measured, limits, policy));
    findings.extend(rtt::findings(measured, limits, policy));
    findings.extend(loss::findings(measured, limits, policy));
    findings.extend(etcd::findings(measured, limits, policy));
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
