//! Hands the measurements to the verdict.

use super::trace::OFFER;
use crate::config::PreflightConfig;
use crate::measure::TargetMeasurement;
use crate::plan::{Plan, path_end, server_certificate};
use crate::probe::Stage;
use crate::target::Role;
use crate::verdict::{
    self, Decisions, Finding, FindingState, Policy, RunPolicy, RunVerdict, TargetVerdict, Verdict,
};

/// What to say of an address that only `--initial-cluster` knows.
const GONE: &str = "It was a member when this one started and may have been removed since; --discover-members asks \
                    etcd.";

/// How decisive the run must be.
pub(super) fn policy(config: &PreflightConfig, targets: usize) -> Policy {
    Policy {
        confidence: config.decision.confidence,
        looks: config.max_connections,
        targets: u32::try_from(targets).unwrap_or(u32::MAX).max(1),
    }
}

/// One target's verdict, by all looks at it so far.
pub(super) fn target(
    decisions: &mut Decisions,
    config: &PreflightConfig,
    plan: &Plan,
    measured: &TargetMeasurement,
    targets: usize,
) -> TargetVerdict {
    let limits = config.decision.limits_for(&plan.timing);
    let judged = decisions.judge(measured, &limits, &policy(config, targets));
    let mut findings = judged.findings;
    findings.extend(server_certificate(measured));
    if let Some(text) = plan
        .refused
        .as_ref()
        .filter(|_| measured.target.spec.role == Role::ApiServer)
    {
        findings.push(
            Finding::plain("apiserver-trust", FindingState::Fail, text.clone()).hint(
                "The join will refuse this server for the same reason. On a control-plane node `kubeadm token create \
                 --print-join-command` prints the right hash.",
            ),
        );
    }
    if is_gone(plan, measured) {
        for finding in findings
            .iter_mut()
            .filter(|f| f.state == FindingState::Fail)
        {
            finding.state = FindingState::Warn;
            GONE.clone_into(&mut finding.hint);
        }
    }
    if !config.trace && measured.target.address.is_some() {
        offer_trace(&mut findings);
    }
    TargetVerdict::of(findings)
}

/// Says once where a target is slow, lossy or silent what would show more.
fn offer_trace(findings: &mut [Finding]) {
    let about_the_way = |finding: &&mut Finding| {
        matches!(finding.state, FindingState::Warn | FindingState::Fail)
            && (matches!(
                finding.id,
                "reachable" | "connect-time" | "syn-retransmits" | "retransmit-rate"
            ) || finding.id.ends_with("-rtt-median"))
    };
    if let Some(finding) = findings.iter_mut().find(about_the_way) {
        if !finding.hint.is_empty() {
            finding.hint.push(' ');
        }
        finding.hint.push_str(OFFER);
    }
}

/// A target of long ago that cannot be reached now.
fn is_gone(plan: &Plan, measured: &TargetMeasurement) -> bool {
    let tentative = plan
        .targets
        .iter()
        .any(|target| target.tentative && target.spec == measured.target.spec);
    let failure = measured
        .probe
        .as_ref()
        .and_then(|probe| probe.failure.as_ref());
    tentative && failure.is_some_and(|failure| failure.stage <= Stage::Tcp)
}

/// The run's verdict.
pub(super) fn run(
    decisions: &mut Decisions,
    config: &PreflightConfig,
    plan: &Plan,
    measured: &[TargetMeasurement],
) -> RunVerdict {
    let judged: Vec<_> = measured
        .iter()
        .map(|measurement| {
            let mut judged = target(decisions, config, plan, measurement, measured.len());
            judged
                .findings
                .extend(path_end(measurement, measured, plan.stacked));
            (measurement.clone(), judged)
        })
        .collect();
    let mut verdict = verdict::combine(
        &judged,
        &RunPolicy {
            join: plan.join,
            allow_unreachable: config.allow_unreachable,
        },
    );
    let warned = plan
        .findings
        .iter()
        .any(|finding| finding.state == FindingState::Warn);
    if warned {
        verdict.verdict = verdict.verdict.max(Verdict::Warn);
    }
    verdict::advise(
        &mut verdict,
        measured,
        config.decision.limits_for(&plan.timing).timing(),
        &policy(config, measured.len()),
        plan.join,
    );
    verdict.findings.splice(0..0, plan.findings.iter().cloned());
    if config.decision.leniency.warn_only {
        verdict = verdict.with_fails_as_warnings();
    }
    verdict
}
