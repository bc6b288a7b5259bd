use std::time::Duration;

use super::*;

#[test]
fn ids_index_their_own_limit() {
    let limits = Limits::default();
    for id in LimitId::ALL {
        assert_eq!(limits.get(id).id, id);
        assert!(!limits.get(id).source.is_empty(), "{}", id.name());
    }
}

#[test]
fn the_defaults_are_the_table() {
    let shown: Vec<String> = Limits::default().iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "50 ms", "100 ms", "150 ms", "100 ms", "2000 ms", "0", "2000 ms", "2000 ms",
            "30000 ms", "1 %", "5 %", "250 ms", "1000 ms"
        ]
    );
}

#[test]
fn the_clusters_timing_rescales_the_etcd_rows() {
    let limits = Limits::from_timing(Timing {
        heartbeat: Duration::from_millis(500),
        election: Duration::from_millis(2500),
        source: "etcd.yaml".to_owned(),
    });
    assert_eq!(limits.get(LimitId::EtcdRttWarn).value, 250_000);
    assert_eq!(limits.get(LimitId::EtcdRttFail).value, 250_000);
    assert_eq!(
        limits.get(LimitId::EtcdRttFail).source,
        "a tenth of the election timeout of 2500 ms (etcd.yaml)"
    );
    assert_eq!(limits.get(LimitId::EtcdPeerConnectFail).value, 3_500_000);
}

#[test]
fn every_limit_can_be_written() {
    let mut limits = Limits::default();
    for (written, id, value) in [
        ("etcd-rtt-fail=80ms", LimitId::EtcdRttFail, 80_000),
        (
            "etcd-connect-fail = 1.5s",
            LimitId::EtcdConnectFail,
            1_500_000,
        ),
        (
            "retransmit-rate-warn=0.5%",
            LimitId::RetransmitRateWarn,
            5_000,
        ),
        ("syn-retransmits-warn=2", LimitId::SynRetransmitsWarn, 2),
    ] {
        assert_eq!(limits.set_written(written, "--limit flag"), Ok(()));
        assert_eq!(limits.get(id).value, value);
        assert_eq!(limits.get(id).source, "--limit flag");
    }
    for (written, reason) in [
        ("etcd-rtt-fail", "NAME=VALUE"),
        ("rtt=3ms", "choose from etcd-rtt-warn"),
        ("etcd-rtt-fail=80", "80ms"),
        ("etcd-rtt-fail=-1ms", "80ms"),
        ("etcd-rtt-fail=0ms", "every join"),
        ("retransmit-rate-warn=2", "2%"),
        ("retransmit-rate-warn=101%", "2%"),
        ("syn-retransmits-warn=1.5", "whole number"),
    ] {
        let error = limits.set_written(written, "x").unwrap_err().to_string();
        assert!(error.contains(reason) && error.contains(written), "{error}");
    }
}
