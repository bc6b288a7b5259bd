//! How long connecting took, and whether SYNs were lost.

use super::Rules;
use crate::measure::{TargetMeasurement, micros};
use crate::target::Role;
use crate::verdict::limits::LimitId;
use crate::verdict::median::{Median, Samples};
use crate::verdict::{Finding, FindingState, Unit, WarnFail, text};
use probe_common::cells::Measure;

const TIME: &str = "connect-time";
const SYN: &str = "syn-retransmits";

/// Ids: `connect-time`, `syn-retransmits`.
pub(super) fn findings(measured: &TargetMeasurement, rules: &mut Rules<'_>) -> Vec<Finding> {
    vec![time(measured, rules), syn(measured, rules)]
}

fn time(measured: &TargetMeasurement, rules: &mut Rules<'_>) -> Finding {
    let connect = &measured.distributions.connect;
    let role = measured.target.spec.role;
    let limit = rules.limits.get(match role {
        Role::EtcdClient => LimitId::EtcdConnectFail,
        Role::EtcdPeer => LimitId::EtcdPeerConnectFail,
        Role::ApiServer => LimitId::ApiserverConnectFail,
    });
    let own = measured.probe.as_ref().and_then(|probe| probe.stages.tcp);
    let slowest = own
        .map(micros)
        .into_iter()
        .chain((!connect.is_empty()).then(|| connect.lowest_equivalent(connect.max())))
        .max();
    let Some(slowest) = slowest else {
        return Finding::plain(
            TIME,
            FindingState::Skipped,
            "no connection was established, so connect time was not measured",
        );
    };
    let n = connect.len().max(1);
    let base = Finding {
        measure: Some(Measure::Connect),
        n,
        value: Some(slowest),
        limit: Some(limit.value),
        limits: WarnFail::fail(limit.value),
        unit: Unit::Micros,
        source: limit.source.clone(),
        ..Finding::plain(TIME, FindingState::Pass, "")
    };
    if slowest <= limit.value {
        return Finding {
            text: format!(
                "connecting took {} (slowest of {n}), within the limit of {limit}",
                text::ms(slowest)
            ),
            ..base
        };
    }
    // A probe stands for a dial of the join. Among watched connections one slow dial is usual and is retried;
    // only when most are slow does the join itself run out of time.
    let fails = measured.probe.is_some()
        || Median::of(Samples::Unordered(connect), rules.policy)
            .and_then(|median| median.bounds.lower)
            .is_some_and(|lower| lower > limit.value);
    Finding {
        state: if fails {
            FindingState::Fail
        } else {
            FindingState::Warn
        },
        text: format!(
            "connecting took {} (slowest of {n}), above the limit of {limit}",
            text::ms(slowest)
        ),
        hint: format!(
            "{} Look for packet loss, a full conntrack table, or a firewall that drops the first packet.",
            match role {
                Role::EtcdClient =>
                    "kubeadm gives each etcd dial 2 s; two lost SYNs take 2 to 3 s.",
                Role::EtcdPeer =>
                    "Two lost SYNs take 2 to 3 s, and a member gives up a dial that takes as long.",
                Role::ApiServer => "A dial this slow is given up by Kubernetes clients.",
            }
        ),
        ..base
    }
}

fn syn(measured: &TargetMeasurement, rules: &Rules<'_>) -> Finding {
    let limit = rules.limits.get(LimitId::SynRetransmitsWarn);
    let sent_again = measured.counters.syn_retransmits;
    let opened = measured.counters.opened;
    let base = Finding {
        n: opened,
        value: Some(sent_again),
        limit: Some(limit.value),
        limits: WarnFail::warn(limit.value),
        source: limit.source.clone(),
        ..Finding::plain(SYN, FindingState::Pass, "")
    };
    let connects = text::count(opened, "connect");
    let nobody_there = measured
        .probe
        .as_ref()
        .is_some_and(|probe| probe.failure.is_some() && probe.stages.tcp.is_none());
    if nobody_there {
        // SYNs sent again to nobody tell of no loss; `reachable` says what there is to say.
        Finding {
            state: FindingState::Skipped,
            text: format!(
                "no connection was established, so {} tell nothing about loss",
                text::count(sent_again, "SYN retransmit")
            ),
            ..base
        }
    } else if sent_again > limit.value {
        Finding {
            state: FindingState::Warn,
            text: format!(
                "{} in {connects}, above the limit of {limit}",
                text::count(sent_again, "SYN retransmit")
            ),
            hint: format!(
                "Each lost SYN or SYN-ACK costs a second or more{}; look for packet loss on the path and for a full accept queue (ListenOverflows) on the server.",
                if measured.target.spec.role == Role::EtcdClient {
                    ", and kubeadm gives each etcd dial 2 s"
                } else {
                    ""
                }
            ),
            ..base
        }
    } else if opened == 0 {
        Finding {
            state: FindingState::Skipped,
            text: "no connect was seen, so SYN retransmits were not counted".to_owned(),
            ..base
        }
    } else {
        Finding {
            text: format!(
                "{} in {connects}",
                text::count(sent_again, "SYN retransmit")
            ),
            ..base
        }
    }
}
