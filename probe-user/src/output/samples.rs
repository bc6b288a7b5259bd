//! Reports the tests of every format share: what a join over a 10 ms link looks like.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use crate::histogram;
use crate::measure::{Counters, Distributions, Opener, Sampled, TargetMeasurement};
use crate::output::{EventReport, Interval, IntervalReport, ObserverReport, Process, Report};
use crate::output::{Kind, Schema, Timestamp};
use crate::target::{ProcessName, Role, Side, Target, TargetSpec};
use crate::verdict::{
    Finding, FindingState, Policy, RunVerdict, TargetVerdict, Timing, Unit, Verdict, WarnFail,
    recommend,
};

/// 2026-12-01T20:00:00Z.
pub(crate) fn time() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_hours(498_932)
}

/// A target whose RTT is `rtt_us`, with `n` connections.
pub(crate) fn target(role: Role, address: &str, rtt_us: u64, n: u64) -> TargetMeasurement {
    let address: SocketAddr = address.parse().unwrap();
    let mut distributions = Distributions::default();
    for i in 0..n {
        let spread = i * 37 % 400;
        histogram::record(&mut distributions.handshake, rtt_us + spread, 1);
        histogram::record(&mut distributions.connect, rtt_us + spread + 30, 1);
        histogram::record(&mut distributions.segment_min, rtt_us + 20, 1);
        for j in 0..10 {
            let thinking = if j == 9 { 40_000 } else { j * 90 };
            histogram::record(&mut distributions.segment, rtt_us + spread + thinking, 1);
        }
    }
    TargetMeasurement {
        opener: Opener::default(),
        sampled: None,
        target: Target {
            spec: TargetSpec {
                role,
                host: address.ip().to_string(),
                port: address.port(),
            },
            address: Some(address),
        },
        side: Side::Client,
        distributions,
        counters: Counters {
            opened: n + 1,
            established: n,
            refused: 1,
            syn_retransmits: 2,
            retransmits: 3,
            segments_out: n * 12,
            closed: n,
            ..Counters::default()
        },
        probe: None,
    }
}

/// Three connections from before, of which two are left.
pub(crate) fn sampled() -> Sampled {
    let mut sampled = Sampled {
        found: 3,
        open: 2,
        segments_out: 40,
        ..Sampled::default()
    };
    histogram::record(&mut sampled.smoothed, 10_250, 2);
    histogram::record(&mut sampled.minimum, 10_050, 2);
    sampled
}

fn targets(n: u64) -> Vec<TargetMeasurement> {
    vec![
        target(Role::EtcdClient, "10.1.0.2:2379", 10_050, n),
        target(Role::EtcdPeer, "[fd00::2]:2380", 10_120, n),
        target(Role::ApiServer, "10.1.0.9:6443", 900, 4 * n),
    ]
}

/// Processes that talk to one member: one that is not known, and two of which one has an odd name.
pub(crate) const PROCESSES: [Option<&[u8; 16]>; 3] = [
    None,
    Some(b"etcd\0\0\0\0\0\0\0\0\0\0\0\0"),
    Some(b"a;b, \"c\"\x1b<d>\xff\0\0\0"),
];

/// Their measurements, `n` connections each, and another target's.
fn by_process(n: u64) -> (Vec<TargetMeasurement>, RunVerdict) {
    let row = |name: Option<&[u8; 16]>| TargetMeasurement {
        opener: Opener {
            netns: 0,
            process: name.and_then(|name| ProcessName::new(*name)),
        },
        ..target(Role::EtcdClient, "10.1.0.2:2379", 10_050, n)
    };
    let mut rows: Vec<_> = PROCESSES.into_iter().map(row).collect();
    rows.push(TargetMeasurement {
        target: target(Role::ApiServer, "10.1.0.9:6443", 900, 1).target,
        ..row(PROCESSES[1])
    });
    let mut verdict = judged(&rows);
    for further in &mut verdict.targets[1..3] {
        further.findings.clear();
    }
    (rows, verdict)
}

/// Interval number `n` with processes told apart.
pub(crate) fn interval_by_process(n: u64) -> IntervalReport {
    let (measured, verdict) = by_process(6);
    let ten = Duration::from_secs(10) * u32::try_from(n).unwrap();
    IntervalReport::new(Interval {
        node: "cp-4",
        end: time() + ten,
        length: Duration::from_secs(10),
        elapsed: ten,
        phase: None,
        verdict: &verdict,
        measured,
        totals: by_process(6 * n).0,
        observer: observer(),
    })
}

/// A run with processes told apart.
pub(crate) fn verdict_by_process() -> Report {
    let (measured, verdict) = by_process(6);
    of_run(&measured, &verdict)
}

fn finding() -> Finding {
    Finding {
        id: "etcd-handshake-rtt-median",
        state: FindingState::Pass,
        measure: Some(probe_common::cells::Measure::Handshake),
        quantile: Some(0.5),
        n: 6,
        value: Some(10_111),
        lower: Some(10_047),
        upper: Some(10_175),
        limit: Some(50_000),
        needs: None,
        limits: WarnFail {
            warn: Some(50_000),
            fail: Some(100_000),
        },
        unit: Unit::Micros,
        source: "half of the heartbeat interval of 100 ms (etcd defaults)".to_owned(),
        text: "handshake RTT median 10.1 ms (n=6) is within 50 ms".to_owned(),
        hint: String::new(),
    }
}

fn judged(targets: &[TargetMeasurement]) -> RunVerdict {
    RunVerdict {
        recommendation: recommend(targets, &Timing::default(), &Policy::default()),
        verdict: Verdict::Pass,
        findings: Vec::new(),
        targets: targets
            .iter()
            .map(|_| TargetVerdict {
                verdict: Verdict::Pass,
                findings: vec![finding()],
            })
            .collect(),
    }
}

pub(crate) fn observer() -> ObserverReport {
    ObserverReport {
        kernel: "6.18.44".to_owned(),
        rtt_source: "raw".to_owned(),
        events_lost: 5,
        slots_used: 9,
        flows_seen: 81,
        rss_bytes: 9 << 20,
        rss_peak_bytes: 29 << 20,
        cgroup: "/sys/fs/cgroup".to_owned(),
        ..ObserverReport::default()
    }
}

/// Interval number `n` (1 is the first) of ten seconds.
pub(crate) fn interval_number(n: u64) -> IntervalReport {
    let measured = targets(6);
    let ten = Duration::from_secs(10);
    IntervalReport::new(Interval {
        node: "cp-4",
        end: time() + ten * u32::try_from(n).unwrap(),
        length: ten,
        elapsed: ten * u32::try_from(n).unwrap(),
        phase: Some("etcd"),
        verdict: &judged(&measured),
        measured,
        totals: targets(6 * n),
        observer: observer(),
    })
}

pub(crate) fn interval() -> IntervalReport {
    interval_number(1)
}

pub(crate) fn event() -> EventReport {
    EventReport {
        schema: Schema::V1,
        kind: Kind::Event,
        time: Timestamp(time()),
        node: "cp-4".to_owned(),
        phase: None,
        event: "failed",
        outcome: "refused",
        role: "etcd-client",
        target: "10.1.0.2:2379".to_owned(),
        side: "client",
        adopted: false,
        waited_us: 10_311,
        syn_retransmits: 0,
        process: Some(Process {
            name: "kubeadm".to_owned(),
            pid: Some(4711),
        }),
        left_out: 0,
    }
}

pub(crate) fn verdict() -> Report {
    let measured = targets(6);
    let verdict = judged(&measured);
    of_run(&measured, &verdict)
}

/// A run without a target.
pub(crate) fn nothing() -> Report {
    of_run(&[], &judged(&[]))
}

/// A run that fails: a warning, a median beyond its limit, and a finding of every other state.
pub(crate) fn trouble() -> Report {
    let measured = targets(6);
    let mut verdict = judged(&measured);
    verdict.verdict = Verdict::Fail;
    verdict.targets[0].verdict = Verdict::Warn;
    verdict.targets[0].findings = vec![
        Finding {
            state: FindingState::Warn,
            value: Some(71_400),
            text: "handshake RTT median 71.4 ms (n=6) is above the warn limit of 50 ms".to_owned(),
            hint: "Look for a longer route | or a busy link.".to_owned(),
            ..finding()
        },
        Finding::plain(
            "client-certificate",
            FindingState::Skipped,
            "no client certificate was given",
        ),
    ];
    verdict.targets[1].verdict = Verdict::Fail;
    verdict.targets[1].findings = vec![Finding {
        state: FindingState::Fail,
        value: Some(131_072),
        limit: Some(100_000),
        source: "a tenth of the election timeout of 1000 ms (etcd defaults)".to_owned(),
        text: "handshake RTT median 131 ms (n=6) is above the fail limit of 100 ms".to_owned(),
        hint: "A member this far away misses heartbeats: <move> it & try again.".to_owned(),
        ..finding()
    }];
    verdict.targets[2].findings = vec![
        finding(),
        Finding {
            id: "retransmit-rate",
            state: FindingState::NotDecided,
            measure: None,
            quantile: None,
            n: 288,
            value: Some(10_416),
            lower: Some(2_853),
            upper: Some(26_676),
            limit: Some(10_000),
            needs: None,
            limits: WarnFail::both(10_000, 50_000),
            unit: Unit::PartsPerMillion,
            source: "loss that TCP hides as latency".to_owned(),
            text: "3 of 288 segments retransmitted (1.04 %): not decided".to_owned(),
            hint: String::new(),
        },
        Finding {
            id: "syn-retransmits",
            state: FindingState::Pass,
            n: 7,
            value: Some(0),
            limit: Some(0),
            limits: WarnFail::warn(0),
            ..Finding::plain(
                "syn-retransmits",
                FindingState::Pass,
                "0 SYN retransmits in 7 connects",
            )
        },
    ];
    verdict.findings = vec![
        Finding::plain(
            "etcd-not-measured",
            FindingState::Inconclusive,
            "etcd not measured",
        )
        .hint("Name the members with --etcd."),
    ];
    of_run(&measured, &verdict)
}

fn of_run(measured: &[TargetMeasurement], verdict: &RunVerdict) -> Report {
    Report::of_run(
        "cp-4",
        time(),
        Duration::from_millis(870),
        measured,
        verdict,
        observer(),
    )
}
