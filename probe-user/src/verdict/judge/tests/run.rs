//! From targets to a run.

use super::*;

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
