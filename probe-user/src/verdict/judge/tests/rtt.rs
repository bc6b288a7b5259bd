//! Medians and their bounds.

use super::*;

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
