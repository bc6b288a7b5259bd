//! What etcd itself took for the one read.

use crate::measure::{TargetMeasurement, micros};
use crate::probe::Stage;
use crate::target::Role;
use crate::verdict::limits::{LimitId, Limits};
use crate::verdict::median::{Median, Samples};
use crate::verdict::policy::Policy;
use crate::verdict::{Finding, FindingState, Unit, text};

/// Ids: `etcd-request`, `etcd-server-time`.
pub(super) fn findings(
    measured: &TargetMeasurement,
    limits: &Limits,
    policy: &Policy,
) -> Vec<Finding> {
    const ID: &str = "etcd-request";
    let Some(probe) = &measured.probe else {
        return Vec::new();
    };
    if measured.target.spec.role == Role::ApiServer {
        return Vec::new();
    }
    if let Some(failure) = probe.failure.as_ref().filter(|f| f.stage == Stage::Request) {
        return vec![
            Finding::plain(ID, FindingState::Fail, failure.text.clone()).hint(
                "A member that cannot answer a read within 2 s cannot accept a new member either: check for a leader (etcdctl endpoint status), slow disks and overloaded members before joining.",
            ),
        ];
    }
    let (Some(answer), Some(took)) = (&probe.etcd, probe.stages.request) else {
        return Vec::new();
    };
    let took = micros(took);
    let limit = limits.get(LimitId::EtcdRequestFail);
    let within = took <= limit.value;
    let request = Finding {
        n: 1,
        value: Some(took),
        limit: Some(limit.value),
        unit: Unit::Micros,
        source: limit.source.clone(),
        hint: if within {
            String::new()
        } else {
            "kubeadm gives up each etcd call after 2 s, so the join would see `context deadline exceeded` here; compare with etcd's own time below to tell the network from the member.".to_owned()
        },
        ..Finding::plain(
            ID,
            if within {
                FindingState::Pass
            } else {
                FindingState::Fail
            },
            format!(
                "a linearizable read was answered ({}) in {}, {} the limit of {limit}",
                answer.result,
                text::ms(took),
                if within { "within" } else { "above" },
            ),
        )
    };
    let mut findings = vec![request];
    findings.extend(server_time(measured, took, limits, policy));
    findings
}

/// The request less one round trip: quorum, disk and queueing inside etcd.
fn server_time(
    measured: &TargetMeasurement,
    took: u64,
    limits: &Limits,
    policy: &Policy,
) -> Option<Finding> {
    let probe = measured.probe.as_ref()?;
    let path = Median::of(Samples::Ordered(&probe.path_sequence), policy)
        .or_else(|| Median::of(Samples::Unordered(&measured.distributions.path), policy))
        .or_else(|| {
            Median::of(
                Samples::Unordered(&measured.distributions.handshake),
                policy,
            )
        })?;
    let limit = limits.get(LimitId::EtcdServerTimeWarn);
    let server = took.saturating_sub(path.value);
    let within = server <= limit.value;
    let split = format!(
        "{} of the read's {} were etcd's own time, {} the network's",
        text::ms(server),
        text::ms(took),
        text::ms(took - server)
    );
    Some(Finding {
        n: 1,
        value: Some(server),
        limit: Some(limit.value),
        unit: Unit::Micros,
        source: limit.source.clone(),
        hint: if within {
            String::new()
        } else {
            "The network is not what is slow here. A linearizable read waits for the leader and a quorum: look at the members' disks (etcd_disk_wal_fsync_duration_seconds), their load, and the links between them.".to_owned()
        },
        ..Finding::plain(
            "etcd-server-time",
            if within {
                FindingState::Pass
            } else {
                FindingState::Warn
            },
            if within {
                format!("{split}, within the limit of {limit}")
            } else {
                format!("{split}, above the warn limit of {limit}")
            },
        )
    })
}
