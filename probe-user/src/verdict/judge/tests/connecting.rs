//! Connecting, and lost SYNs.

use super::*;

#[test]
fn a_lost_syn_warns_and_two_fail() {
    let mut measured = etcd(&[10_000; 15]);
    measured.counters.syn_retransmits = 1;
    measured.probe.as_mut().unwrap().stages.tcp = Some(Duration::from_millis(1010));
    let judged = judge(&measured);
    assert_eq!(judged.verdict, Verdict::Warn);
    assert_eq!(
        finding(&judged, "syn-retransmits").text,
        "1 SYN retransmit in 1 connect, above the limit of 0"
    );
    measured.counters.syn_retransmits = 2;
    measured.probe.as_mut().unwrap().stages.tcp = Some(Duration::from_millis(3010));
    let judged = judge(&measured);
    assert_eq!(judged.verdict, Verdict::Fail);
    assert_eq!(
        finding(&judged, "connect-time").text,
        "connecting took 3010 ms (slowest of 1), above the limit of 2000 ms"
    );
}

#[test]
fn each_role_has_its_own_limit_for_connecting() {
    for (role, limit, source) in [
        (Role::EtcdClient, 2_000_000, "kubeadm"),
        (Role::EtcdPeer, 2_000_000, "election timeout of 1000 ms"),
        (Role::ApiServer, 30_000_000, "client-go"),
    ] {
        let mut measured = at_host(role, "10.1.0.2", &[10_000; 15]);
        let probe = measured.probe.as_mut().unwrap();
        probe.stages.tcp = Some(Duration::from_millis(3010));
        let judged = judge(&measured);
        let connect = finding(&judged, "connect-time");
        assert_eq!(connect.limit, Some(limit), "{connect:?}");
        assert!(connect.source.contains(source), "{connect:?}");
        let fails = connect.state == FindingState::Fail;
        assert_eq!(fails, role != Role::ApiServer, "{connect:?}");
    }
}

#[test]
fn syns_to_nobody_are_no_sign_of_loss() {
    let mut gone = unreachable("10.1.0.9");
    gone.counters.opened = 1;
    gone.counters.syn_retransmits = 3;
    let judged = judge(&gone);
    assert_eq!(finding(&judged, "reachable").state, FindingState::Fail);
    assert_eq!(
        finding(&judged, "syn-retransmits").state,
        FindingState::Skipped
    );
}
