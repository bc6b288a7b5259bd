//! Targets that refuse, fail or hang.

use super::*;

#[test]
fn a_refused_certificate_warns_and_the_rtt_is_still_judged() {
    let mut measured = etcd(&[130_000; 15]);
    measured.probe.as_mut().unwrap().client_certificate =
        ClientCertificate::Rejected("certificate expired".to_owned());
    let judged = judge(&measured);
    assert_eq!(
        finding(&judged, "client-certificate").state,
        FindingState::Warn
    );
    assert_eq!(judged.verdict, Verdict::Fail);
}

#[test]
fn failures_keep_their_sentence_at_every_stage() {
    for (stage, id) in [
        (Stage::Dns, "reachable"),
        (Stage::Tcp, "reachable"),
        (Stage::Tls, "tls"),
        (Stage::Request, "etcd-request"),
    ] {
        let mut measured = etcd(&[10_000; 15]);
        measured.probe.as_mut().unwrap().failure = Some(ProbeFailure {
            stage,
            result: "timed_out",
            text: "it says why".to_owned(),
        });
        let judged = judge(&measured);
        assert_eq!(judged.verdict, Verdict::Fail);
        let failed = finding(&judged, id);
        assert_eq!(
            (failed.state, failed.text.as_str()),
            (FindingState::Fail, "it says why")
        );
        assert!(!failed.hint.is_empty());
    }
}

#[test]
fn too_little_time_is_inconclusive_at_every_stage() {
    for (stage, id) in [
        (Stage::Dns, "reachable"),
        (Stage::Tcp, "reachable"),
        (Stage::Tls, "tls"),
        (Stage::Request, "etcd-request"),
    ] {
        let mut hasty = etcd(&[]);
        hasty.probe.as_mut().unwrap().failure = Some(ProbeFailure {
            stage,
            result: crate::probe::TOO_SHORT,
            text: "was given only 90 ms".to_owned(),
        });
        let judged = judge(&hasty);
        assert_eq!(finding(&judged, id).state, FindingState::Inconclusive);
        assert_eq!(judged.verdict, Verdict::Inconclusive);
        assert!(finding(&judged, id).hint.contains("--timeout"));
        // Nothing is known of it, so that it cannot be called unreachable either.
        let run = combine(
            &[(hasty, judged)],
            &RunPolicy {
                join: Join::ControlPlane,
                allow_unreachable: 1,
            },
        );
        assert_eq!(run.verdict, Verdict::Inconclusive);
    }
}

#[test]
fn a_member_that_accepts_and_never_answers_is_tolerated_too() {
    let mut stopped = etcd(&[10_000; 15]);
    stopped.probe.as_mut().unwrap().failure = Some(ProbeFailure {
        stage: Stage::Tls,
        result: "timed_out",
        text: "did not answer the TLS ClientHello".to_owned(),
    });
    let healthy = at_host(Role::EtcdClient, "10.1.0.3", &[10_000; 15]);
    let targets: Vec<_> = [stopped, healthy]
        .map(|measured| {
            let judged = judge(&measured);
            (measured, judged)
        })
        .into();
    for (allow_unreachable, verdict) in [(0, Verdict::Fail), (1, Verdict::Warn)] {
        let policy = RunPolicy {
            join: Join::ControlPlane,
            allow_unreachable,
        };
        assert_eq!(combine(&targets, &policy).verdict, verdict);
    }
}
