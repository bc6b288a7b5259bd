//! Each limit's name, unit and default.

use crate::verdict::Unit;

/// Names one limit. The name is what users write and what docs/verdicts.md explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LimitId {
    /// Median network RTT to an etcd member, warn.
    EtcdRttWarn,
    /// Median network RTT to an etcd member, fail.
    EtcdRttFail,
    /// 99th percentile of ordinary segment RTTs to an etcd member, warn.
    EtcdSegmentP99Warn,
    /// etcd's own time for one linearizable read (request minus median RTT), warn.
    EtcdServerTimeWarn,
    /// The whole request stage of one etcd read, fail.
    EtcdRequestFail,
    /// Retransmitted SYNs, warn; a count.
    SynRetransmitsWarn,
    /// `connect()` to ESTABLISHED at an etcd client port, fail.
    EtcdConnectFail,
    /// The same at an etcd peer port, fail.
    EtcdPeerConnectFail,
    /// The same at an API server, fail.
    ApiserverConnectFail,
    /// Share of data segments that were retransmitted, warn.
    RetransmitRateWarn,
    /// Share of data segments that were retransmitted, fail.
    RetransmitRateFail,
    /// Median network RTT to an API server, warn.
    ApiserverRttWarn,
    /// Median network RTT to an API server, fail.
    ApiserverRttFail,
}

impl LimitId {
    /// Every limit, in the order of the table in docs/verdicts.md.
    pub const ALL: [Self; 13] = [
        Self::EtcdRttWarn,
        Self::EtcdRttFail,
        Self::EtcdSegmentP99Warn,
        Self::EtcdServerTimeWarn,
        Self::EtcdRequestFail,
        Self::SynRetransmitsWarn,
        Self::EtcdConnectFail,
        Self::EtcdPeerConnectFail,
        Self::ApiserverConnectFail,
        Self::RetransmitRateWarn,
        Self::RetransmitRateFail,
        Self::ApiserverRttWarn,
        Self::ApiserverRttFail,
    ];

    /// What users write, for example `etcd-rtt-fail`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::EtcdRttWarn => "etcd-rtt-warn",
            Self::EtcdRttFail => "etcd-rtt-fail",
            Self::EtcdSegmentP99Warn => "etcd-segment-p99-warn",
            Self::EtcdServerTimeWarn => "etcd-server-time-warn",
            Self::EtcdRequestFail => "etcd-request-fail",
            Self::SynRetransmitsWarn => "syn-retransmits-warn",
            Self::EtcdConnectFail => "etcd-connect-fail",
            Self::EtcdPeerConnectFail => "etcd-peer-connect-fail",
            Self::ApiserverConnectFail => "apiserver-connect-fail",
            Self::RetransmitRateWarn => "retransmit-rate-warn",
            Self::RetransmitRateFail => "retransmit-rate-fail",
            Self::ApiserverRttWarn => "apiserver-rtt-warn",
            Self::ApiserverRttFail => "apiserver-rtt-fail",
        }
    }

    /// The unit of the limit's value.
    #[must_use]
    pub fn unit(self) -> Unit {
        match self {
            Self::SynRetransmitsWarn => Unit::Count,
            Self::RetransmitRateWarn | Self::RetransmitRateFail => Unit::PartsPerMillion,
            _ => Unit::Micros,
        }
    }

    pub(super) fn default_value(self) -> (u64, &'static str) {
        match self {
            // Rescaled from the cluster's timing right after construction; these are etcd's defaults.
            Self::EtcdRttWarn => (50_000, ""),
            Self::EtcdRttFail => (100_000, ""),
            Self::EtcdSegmentP99Warn => {
                (150_000, "etcd's mixin, alert etcdMemberCommunicationSlow")
            }
            Self::EtcdServerTimeWarn => (100_000, "etcd logs a request as slow from 100 ms on"),
            Self::EtcdRequestFail => (2_000_000, "kubeadm gives each etcd call 2 s"),
            Self::SynRetransmitsWarn => (0, "a lost SYN costs a second or more"),
            Self::EtcdConnectFail => (2_000_000, "kubeadm gives each etcd dial 2 s"),
            // Rescaled like the first two.
            Self::EtcdPeerConnectFail => (2_000_000, ""),
            Self::ApiserverConnectFail => (
                30_000_000,
                "Kubernetes clients (client-go, so kubeadm and kubelet) give each dial 30 s",
            ),
            Self::RetransmitRateWarn => (10_000, "loss that TCP hides as latency"),
            Self::RetransmitRateFail => (50_000, "loss that TCP hides as latency"),
            Self::ApiserverRttWarn => (
                250_000,
                "Kubernetes API objective of 1 s per call, at about 4 round trips for a fresh call",
            ),
            Self::ApiserverRttFail => (
                1_000_000,
                "Kubernetes API objective of 1 s per call, at one round trip each",
            ),
        }
    }
}
