//! An interval as `watch` reports it.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use probe_user::histogram;
use probe_user::measure::{Counters, Distributions, Opener, TargetMeasurement};
use probe_user::output::{Interval, IntervalReport, ObserverReport, Process};
use probe_user::target::{Role, Side, Target, TargetSpec};
use probe_user::verdict::{RunVerdict, TargetVerdict, Verdict};

/// RTTs from 0.3 ms to 250 ms, with a tail, in three targets.
pub(crate) fn interval() -> Result<IntervalReport> {
    let measured = vec![
        target(Role::EtcdClient, "10.1.0.2:2379".parse()?, 10_050),
        target(Role::EtcdPeer, "[fd00::2]:2380".parse()?, 120_000),
        target(Role::ApiServer, "10.1.0.9:6443".parse()?, 310),
    ];
    let verdict = RunVerdict {
        verdict: Verdict::Warn,
        findings: Vec::new(),
        recommendation: None,
        targets: measured
            .iter()
            .map(|_| TargetVerdict {
                verdict: Verdict::Warn,
                findings: Vec::new(),
            })
            .collect(),
    };
    Ok(IntervalReport::new(Interval {
        node: "cp-4",
        end: SystemTime::now(),
        length: Duration::from_secs(10),
        elapsed: Duration::from_secs(10),
        phase: None,
        verdict: &verdict,
        totals: measured.clone(),
        measured,
        observer: ObserverReport {
            kernel: "6.18.44".to_owned(),
            rtt_source: "raw".to_owned(),
            ..ObserverReport::default()
        },
    }))
}

/// A name that every format has to quote.
pub(crate) const ODD: &str = r#"an "odd"\u{1b} one\xff"#;

/// The same, with the connections of two processes to each target told apart.
pub(crate) fn by_process() -> Result<IntervalReport> {
    let mut report = interval()?;
    let unknown = report.totals.clone();
    for name in ["etcd", ODD] {
        let named = unknown.iter().cloned().map(|mut row| {
            row.process = Some(Process {
                name: name.to_owned(),
                pid: None,
            });
            row
        });
        report.totals.extend(named);
    }
    Ok(report)
}

fn target(role: Role, address: SocketAddr, rtt_us: u64) -> TargetMeasurement {
    let mut distributions = Distributions::default();
    for i in 0..200_u64 {
        // Squares: a dense start and a long tail, up to 1.8 times the RTT.
        let sample = rtt_us + rtt_us * i * i / 50_000;
        histogram::record(&mut distributions.handshake, sample, 1);
        histogram::record(&mut distributions.connect, sample + 25, 1);
        histogram::record(&mut distributions.segment, sample * (1 + i / 180 * 4), 3);
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
            established: 200,
            refused: 2,
            retransmits: 7,
            segments_out: 900,
            ..Counters::default()
        },
        probe: None,
    }
}
