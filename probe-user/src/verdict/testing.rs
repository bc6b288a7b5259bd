//! Measurements for this module's tests.

use std::time::Duration;

use crate::measure::{Counters, Distributions, Opener, TargetMeasurement};
use crate::probe::{ClientCertificate, ProbeFailure, ProbeReport, Stage, Stages, TlsState};
use crate::target::{Role, Side, Target, parse};

pub(super) fn at_host(role: Role, host: &str, path_us: &[u32]) -> TargetMeasurement {
    let mut distributions = Distributions::default();
    for &sample in path_us {
        distributions.path.record(u64::from(sample)).unwrap();
    }
    if let Some(&first) = path_us.first() {
        distributions.handshake.record(u64::from(first)).unwrap();
        distributions.connect.record(u64::from(first)).unwrap();
    }
    TargetMeasurement {
        opener: Opener::default(),
        sampled: None,
        target: Target {
            spec: parse(role, &format!("{host}:2379")).unwrap(),
            address: format!("{host}:2379").parse().ok(),
        },
        side: Side::Client,
        distributions,
        counters: Counters {
            opened: 1,
            established: 1,
            segments_out: 20,
            ..Counters::default()
        },
        probe: Some(ProbeReport {
            stages: Stages {
                tcp: path_us.first().map(|&us| Duration::from_micros(us.into())),
                ..Stages::default()
            },
            tls: TlsState::Unverified,
            client_certificate: ClientCertificate::NotGiven,
            path_sequence: path_us.to_vec(),
            chunks: 16,
            ..ProbeReport::new(None)
        }),
    }
}

pub(super) fn etcd(path_us: &[u32]) -> TargetMeasurement {
    at_host(Role::EtcdClient, "10.1.0.2", path_us)
}

pub(super) fn unreachable(host: &str) -> TargetMeasurement {
    let mut measured = at_host(Role::EtcdClient, host, &[]);
    measured.counters = Counters::default();
    measured.probe.as_mut().unwrap().failure = Some(ProbeFailure {
        stage: Stage::Tcp,
        result: "refused",
        text: "nothing listens there".to_owned(),
    });
    measured
}
