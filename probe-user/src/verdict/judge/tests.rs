use std::time::Duration;

use crate::measure::TargetMeasurement;
use crate::probe::{ClientCertificate, EtcdAnswer, ProbeFailure, Stage};
use crate::target::Role;
use crate::verdict::testing::{at_host, etcd, unreachable};
use crate::verdict::{
    Finding, FindingState, Join, Limits, Policy, RunPolicy, TargetVerdict, Verdict, combine,
    judge_target, needs_more,
};

const DOCUMENTATION: &str = include_str!("../../../../docs/verdicts.md");

fn judge(measured: &TargetMeasurement) -> TargetVerdict {
    let verdict = judge_target(measured, &Limits::default(), &Policy::default());
    for finding in &verdict.findings {
        let anchor = format!("\n### {}\n", finding.id);
        assert!(DOCUMENTATION.contains(&anchor), "no anchor {}", finding.id);
    }
    verdict
}

fn finding<'a>(verdict: &'a TargetVerdict, id: &str) -> &'a Finding {
    verdict
        .findings
        .iter()
        .find(|finding| finding.id == id)
        .unwrap_or_else(|| panic!("{id} in {:?}", verdict.findings))
}

#[test]
fn medians_are_decided_by_fifteen_samples() {
    for (ms, verdict) in [
        (10, Verdict::Pass),
        (70, Verdict::Warn),
        (130, Verdict::Fail),
    ] {
        let judged = judge(&etcd(&[ms * 1000; 15]));
        assert_eq!(judged.verdict, verdict, "{:#?}", judged.findings);
        assert!(!needs_more(&judged));
    }
    let judged = judge(&etcd(&[130_000; 15]));
    let median = finding(&judged, "etcd-path-rtt-median");
    assert_eq!(
        median.text,
        "median path RTT 130 ms (n=15, both bounds 130 ms) is above the fail limit of 100 ms"
    );
    assert_eq!(
        median.source,
        "a tenth of the election timeout of 1000 ms (etcd defaults)"
    );
    assert!(median.hint.contains("election"));
}

#[test]
fn samples_on_both_sides_leave_the_run_open() {
    let mut samples = [90_000; 15];
    for sample in samples.iter_mut().step_by(2) {
        *sample = 110_000;
    }
    let judged = judge(&etcd(&samples));
    assert_eq!(judged.verdict, Verdict::Inconclusive);
    assert!(needs_more(&judged));
    assert!(
        finding(&judged, "etcd-path-rtt-median")
            .text
            .ends_with("against 100 ms: not decided (8 above, 7 within)")
    );
}

#[test]
fn few_samples_decide_only_what_is_clear_cut() {
    assert_eq!(judge(&etcd(&[300_000; 5])).verdict, Verdict::Fail);
    assert_eq!(judge(&etcd(&[130_000; 5])).verdict, Verdict::Inconclusive);
    assert_eq!(judge(&etcd(&[300_000; 4])).verdict, Verdict::Inconclusive);
    assert_eq!(judge(&etcd(&[10_000; 5])).verdict, Verdict::Pass);
}

#[test]
fn other_undecided_checks_do_not_open_the_run() {
    let mut measured = etcd(&[10_000; 15]);
    measured.distributions.segment.record_n(12_000, 15).unwrap();
    let judged = judge(&measured);
    assert_eq!(judged.verdict, Verdict::Pass);
    assert_eq!(
        finding(&judged, "etcd-segment-p99").text,
        "99th percentile of segment RTT 12 ms (n=15) against 150 ms: not decided (n=15, needs 299)"
    );
    assert_eq!(
        finding(&judged, "retransmit-rate").text,
        "0 of 20 segments retransmitted (0 %): whether the rate is above 1 % is not decided (n=20, needs 299 without loss)"
    );
    measured.distributions.segment.record_n(220_000, 2).unwrap();
    assert_eq!(
        finding(&judge(&measured), "etcd-segment-p99").state,
        FindingState::Warn
    );
}

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
fn delayed_acknowledgements_are_named() {
    let mut measured = etcd(&[50_000; 15]);
    measured.distributions.handshake.reset();
    measured.distributions.handshake.record(8_000).unwrap();
    let judged = judge(&measured);
    assert_eq!(
        finding(&judged, "path-above-handshake").text,
        "median path RTT 50 ms is well above the handshake RTT 8 ms: the peer may delay acknowledgements, or the path slowed down meanwhile"
    );
}

#[test]
fn watched_traffic_is_judged_by_handshakes_and_minima() {
    let mut measured = etcd(&[]);
    measured.probe = None;
    measured
        .distributions
        .handshake
        .record_n(130_000, 12)
        .unwrap();
    measured.distributions.segment_min.record(130_000).unwrap();
    let judged = judge(&measured);
    assert_eq!(judged.verdict, Verdict::Fail);
    assert_eq!(
        finding(&judged, "etcd-segment-min-rtt-median").state,
        FindingState::NotDecided
    );
}

#[test]
fn a_run_is_its_worst_target() {
    let run = |measured: Vec<TargetMeasurement>, policy: RunPolicy| {
        let targets: Vec<_> = measured
            .into_iter()
            .map(|measured| {
                let verdict = judge(&measured);
                (measured, verdict)
            })
            .collect();
        combine(&targets, &policy)
    };
    let near = || at_host(Role::EtcdClient, "10.1.0.2", &[10_000; 15]);
    let far = || at_host(Role::EtcdClient, "10.1.0.3", &[70_000; 15]);
    let dead = || unreachable("10.1.0.4");
    let default = RunPolicy::default();
    assert_eq!(run(vec![near(), near()], default).verdict, Verdict::Pass);
    assert_eq!(run(vec![near(), far()], default).verdict, Verdict::Warn);
    assert_eq!(run(vec![near(), dead()], default).verdict, Verdict::Fail);

    let tolerant = RunPolicy {
        allow_unreachable: 1,
        ..default
    };
    let tolerated = run(vec![near(), dead(), dead()], tolerant);
    assert_eq!(tolerated.verdict, Verdict::Warn);
    assert_eq!(
        tolerated.findings[0].text,
        "1 etcd member unreachable (10.1.0.4), tolerated by --allow-unreachable 1"
    );
    let two = run(vec![near(), dead(), unreachable("10.1.0.5")], tolerant);
    assert_eq!(two.verdict, Verdict::Fail);
    assert_eq!(run(vec![dead()], tolerant).verdict, Verdict::Inconclusive);

    let api = || at_host(Role::ApiServer, "10.1.0.9", &[10_000; 15]);
    let without_etcd = run(vec![api()], default);
    assert_eq!(without_etcd.verdict, Verdict::Inconclusive);
    assert_eq!(without_etcd.findings[0].id, "etcd-not-measured");
    let worker = RunPolicy {
        join: Join::Worker,
        ..default
    };
    assert_eq!(run(vec![api()], worker).verdict, Verdict::Pass);
    assert_eq!(run(vec![near()], worker).verdict, Verdict::Inconclusive);
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

#[test]
fn hints_name_flags_that_the_command_has() {
    let mut samples = [90_000; 15];
    samples[..8].fill(110_000);
    let mut open = etcd(&samples);
    let hint = |measured: &TargetMeasurement| {
        let judged = judge(measured);
        let open = judged
            .findings
            .iter()
            .find(|finding| finding.state == FindingState::Inconclusive);
        open.unwrap().hint.clone()
    };
    assert!(hint(&open).contains("--timeout"));
    open.probe = None;
    for &sample in &samples {
        open.distributions
            .handshake
            .record(u64::from(sample))
            .unwrap();
    }
    let watched = hint(&open);
    assert!(
        watched.contains("--interval") && !watched.contains("--timeout"),
        "{watched}"
    );
}
