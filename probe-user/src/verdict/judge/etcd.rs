//! What etcd itself took for the one read.

use super::{Rules, reach};
use crate::measure::{TargetMeasurement, micros};
use crate::probe::{EtcdAnswer, LEADER_CHANGED, ProbeFailure, Stage, TOO_SHORT};
use crate::target::Role;
use crate::verdict::limits::LimitId;
use crate::verdict::median::{Median, Samples};
use crate::verdict::{Finding, FindingState, Unit, WarnFail, text};

/// Ids: `etcd-request`, `etcd-server-time`, `etcd-learner`.
pub(super) fn findings(measured: &TargetMeasurement, rules: &Rules<'_>) -> Vec<Finding> {
    let Some(probe) = &measured.probe else {
        return Vec::new();
    };
    if measured.target.spec.role == Role::ApiServer {
        return Vec::new();
    }
    if let Some(failure) = probe.failure.as_ref().filter(|f| f.stage == Stage::Request) {
        return vec![
            Finding::plain(
                "etcd-request",
                reach::state_of(failure),
                failure.text.clone(),
            )
            .hint(unread(failure)),
        ];
    }
    let (Some(answer), Some(took)) = (&probe.etcd, probe.stages.request) else {
        return Vec::new();
    };
    let took = micros(took);
    if answer.result == LEADER_CHANGED {
        return vec![leader_changed()];
    }
    let mut findings = vec![request(answer, took, rules)];
    if answer.result == "learner" {
        findings.push(learner());
    } else {
        findings.extend(server_time(measured, took, rules));
    }
    findings
}

/// What follows for the join from a read that was not answered.
fn unread(failure: &ProbeFailure) -> &'static str {
    match failure.result {
        TOO_SHORT => reach::HASTE,
        "unauthenticated" => {
            "A join, and the API server after it, know themselves to etcd by a client certificate alone, so they would be turned away too."
        }
        "no_backend" | "request_failed" => {
            "The join asks etcd the same way and would get the same answer; kubeadm gives each call 2 s."
        }
        _ => {
            "A member that cannot answer a read within 2 s cannot accept a new member either: check for a leader (etcdctl endpoint status), slow disks and overloaded members before joining."
        }
    }
}

fn request(answer: &EtcdAnswer, took: u64, rules: &Rules<'_>) -> Finding {
    let limit = rules.limits.get(LimitId::EtcdRequestFail);
    let within = took <= limit.value;
    let state = if within {
        FindingState::Pass
    } else {
        FindingState::Fail
    };
    let text = format!(
        "one linearizable read was answered ({}) in {}, {} the limit of {limit}",
        answer.result,
        text::ms(took),
        if within { "within" } else { "above" },
    );
    Finding {
        n: 1,
        value: Some(took),
        limit: Some(limit.value),
        limits: WarnFail::fail(limit.value),
        unit: Unit::Micros,
        source: limit.source.clone(),
        hint: if within {
            String::new()
        } else {
            "kubeadm gives up each etcd call after 2 s, so the join would see `context deadline exceeded` here; compare with etcd's own time below to tell the network from the member.".to_owned()
        },
        ..Finding::plain("etcd-request", state, text)
    }
}

/// An election fell into the read. The cluster has a leader again, and kubeadm asks again, so this is no reason to
/// replace the machine; and it is not asked again here, because one read is what was promised.
fn leader_changed() -> Finding {
    Finding::plain(
        "etcd-request",
        FindingState::Warn,
        "the one read was answered with `etcdserver: leader changed`: an election fell into it, so how fast the member answers was not measured",
    )
    .hint("One election may be chance, as when a member restarts. If it comes again, the cluster loses its leader often (etcd_server_leader_changes_seen_total) and should be mended before a member joins.")
}

/// A learner is a join that has not ended, and etcd allows one at a time.
fn learner() -> Finding {
    Finding::plain(
        "etcd-learner",
        FindingState::Warn,
        "this member is a learner: it has been added and not yet promoted",
    )
    .hint("etcd allows one learner by default, so a join would end with `too many learner members in cluster`; let the other join finish, or remove what it left (etcdctl member list, member remove).")
}

/// The request less one round trip: quorum, disk and queueing inside etcd.
fn server_time(measured: &TargetMeasurement, took: u64, rules: &Rules<'_>) -> Option<Finding> {
    let handshake = Samples::Unordered(&measured.distributions.handshake);
    let network = Median::of(Samples::path(measured), rules.policy)
        .or_else(|| Median::of(handshake, rules.policy))?;
    let limit = rules.limits.get(LimitId::EtcdServerTimeWarn);
    let server = took.saturating_sub(network.value);
    let within = server <= limit.value;
    let split = format!(
        "{} of the read's {} were etcd's own time, {} the network's",
        text::ms(server),
        text::ms(took),
        text::ms(took - server)
    );
    let (state, text, hint) = if within {
        (
            FindingState::Pass,
            format!("{split}, within the limit of {limit}"),
            "",
        )
    } else {
        (
            FindingState::Warn,
            format!("{split}, above the warn limit of {limit}"),
            "The network is not what is slow here. A linearizable read waits for the leader and a quorum: look at the members' disks (etcd_disk_wal_fsync_duration_seconds), their load, and the links between them.",
        )
    };
    Some(Finding {
        n: 1,
        value: Some(server),
        limit: Some(limit.value),
        limits: WarnFail::warn(limit.value),
        unit: Unit::Micros,
        source: limit.source.clone(),
        hint: hint.to_owned(),
        ..Finding::plain("etcd-server-time", state, text)
    })
}
