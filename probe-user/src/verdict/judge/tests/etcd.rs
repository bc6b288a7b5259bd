//! What is the network's and what is etcd's.

use super::*;

#[test]
fn network_and_server_time_are_told_apart() {
    let mut measured = etcd(&[10_000; 15]);
    let probe = measured.probe.as_mut().unwrap();
    probe.client_certificate = ClientCertificate::Accepted;
    probe.stages.request = Some(Duration::from_millis(160));
    probe.etcd = Some(EtcdAnswer {
        revision: Some(4),
        member_id: Some(1),
        result: "ok",
    });
    let judged = judge(&measured);
    assert_eq!(judged.verdict, Verdict::Warn);
    assert_eq!(
        finding(&judged, "etcd-server-time").text,
        "150 ms of the read's 160 ms were etcd's own time, 10 ms the network's, above the warn limit of 100 ms"
    );
    measured.probe.as_mut().unwrap().stages.request = Some(Duration::from_millis(2100));
    assert_eq!(
        finding(&judge(&measured), "etcd-request").state,
        FindingState::Fail
    );
}

#[test]
fn an_election_during_the_read_is_no_reason_to_fail() {
    let mut measured = etcd(&[10_000; 15]);
    let probe = measured.probe.as_mut().unwrap();
    probe.stages.request = Some(Duration::from_millis(900));
    probe.etcd = Some(EtcdAnswer {
        revision: None,
        member_id: None,
        result: "leader changed",
    });
    let judged = judge(&measured);
    assert_eq!(judged.verdict, Verdict::Warn);
    let request = finding(&judged, "etcd-request");
    assert!(request.text.contains("leader changed") && !request.hint.is_empty());
    assert!(judged.findings.iter().all(|f| f.id != "etcd-server-time"));
}
