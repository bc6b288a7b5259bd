//! From targets to the run.

use std::collections::BTreeMap;

use super::policy::{Join, RunPolicy};
use super::{Finding, FindingState, RunVerdict, TargetVerdict, Verdict, judge, text};
use crate::measure::TargetMeasurement;
use crate::probe::{ProbeFailure, Stage, TOO_SHORT};
use crate::target::{Role, RoleName};

/// The run's verdict: that of its worst target, after what the policy tolerates, and never a pass for a join whose
/// essential servers were not measured.
///
/// Ids: `etcd-not-measured`, `apiserver-not-measured`, `unreachable-members`.
#[must_use]
pub fn combine(targets: &[(TargetMeasurement, TargetVerdict)], policy: &RunPolicy) -> RunVerdict {
    let mut findings = Vec::new();
    let unreachable = unreachable_members(targets);
    let tolerated = !unreachable.is_empty()
        && u32::try_from(unreachable.len()).is_ok_and(|count| count <= policy.allow_unreachable);
    if tolerated {
        findings.push(
            Finding {
                n: u64::try_from(unreachable.len()).unwrap_or(u64::MAX),
                ..Finding::plain(
                    "unreachable-members",
                    FindingState::Warn,
                    format!(
                        "{} unreachable ({}), tolerated by --allow-unreachable {}",
                        text::count(
                            u64::try_from(unreachable.len()).unwrap_or(u64::MAX),
                            "etcd member"
                        ),
                        unreachable.join(", "),
                        policy.allow_unreachable
                    ),
                )
            }
            .hint("etcd accepts a new member only while a majority of the present ones is up, and the new one counts as down until it has started."),
        );
    }
    findings.extend(essential_missing(targets, *policy));
    let worst_target = targets
        .iter()
        .filter(|(measured, _)| !(tolerated && is_unreachable_member(measured)))
        .map(|(_, verdict)| verdict.verdict)
        .max()
        .unwrap_or(Verdict::Pass);
    RunVerdict {
        verdict: worst_target.max(judge::worst(&findings)),
        findings,
        targets: targets.iter().map(|(_, verdict)| verdict.clone()).collect(),
        recommendation: None,
    }
}

/// The servers this kind of join cannot do without, if none of them was measured.
fn essential_missing(
    targets: &[(TargetMeasurement, TargetVerdict)],
    policy: RunPolicy,
) -> Option<Finding> {
    let measured = |role: fn(Role) -> bool| {
        targets
            .iter()
            .any(|(measured, _)| role(measured.target.spec.role) && has_rtt(measured))
    };
    match policy.join {
        Join::ControlPlane if !measured(Role::is_etcd) => Some(
            Finding::plain(
                "etcd-not-measured",
                FindingState::Inconclusive,
                "etcd not measured: no etcd target answered, so nothing is known about the path that decides a control-plane join",
            )
            .hint("Give the members with --etcd HOST:2379 or --etcd-peer HOST:2380; for a worker node, give --worker."),
        ),
        Join::Worker if !measured(|role| role == Role::ApiServer) => Some(
            Finding::plain(
                "apiserver-not-measured",
                FindingState::Inconclusive,
                "API server not measured: no API server target answered, and a worker join needs one",
            )
            .hint("Give the cluster's endpoint with --apiserver HOST:6443."),
        ),
        _ => None,
    }
}

fn has_rtt(measured: &TargetMeasurement) -> bool {
    let distributions = &measured.distributions;
    !(distributions.path.is_empty()
        && distributions.handshake.is_empty()
        && distributions.segment_min.is_empty())
        || measured
            .probe
            .as_ref()
            .is_some_and(|probe| !probe.path_sequence.is_empty())
}

fn is_unreachable_member(measured: &TargetMeasurement) -> bool {
    measured.target.spec.role.is_etcd()
        && measured
            .probe
            .as_ref()
            .and_then(|probe| probe.failure.as_ref())
            .is_some_and(does_not_answer)
}

/// A server that is stopped or hangs still accepts connections: its kernel does. One that was given no time is neither.
fn does_not_answer(failure: &ProbeFailure) -> bool {
    failure.result == "timed_out" || (failure.stage <= Stage::Tcp && failure.result != TOO_SHORT)
}

/// Hosts of etcd members of which a port could not be reached or did not answer; a member's two ports count once.
fn unreachable_members(targets: &[(TargetMeasurement, TargetVerdict)]) -> Vec<String> {
    let mut hosts = BTreeMap::new();
    for (measured, _) in targets {
        if is_unreachable_member(measured) {
            let host = &measured.target.spec.host;
            let key = measured
                .target
                .address
                .map_or_else(|| host.clone(), |address| address.ip().to_string());
            hosts.entry(key).or_insert_with(|| host.clone());
        }
    }
    hosts.into_values().collect()
}
