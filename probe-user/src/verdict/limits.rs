//! The limits: their values, where each comes from, and how one is overridden.

use std::fmt;

use super::Unit;
use super::text;
use super::timing::Timing;

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

    fn default_value(self) -> (u64, &'static str) {
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

/// One limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Which one.
    pub id: LimitId,
    /// Beyond means greater than this, in the unit of [`LimitId::unit`].
    pub value: u64,
    /// Where the value comes from, in words.
    pub source: String,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::in_unit(self.value, self.id.unit()))
    }
}

/// Every limit of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    timing: Timing,
    limits: [Limit; LimitId::ALL.len()],
}

impl Default for Limits {
    fn default() -> Self {
        Self::from_timing(Timing::default())
    }
}

impl Limits {
    /// The table of docs/verdicts.md, its etcd rows rescaled to the cluster's own timing: RTT warns above half a
    /// heartbeat and fails above a tenth of the election timeout, and a peer's dial has one election timeout and 1 s.
    #[must_use]
    pub fn from_timing(timing: Timing) -> Self {
        let limits = LimitId::ALL.map(|id| {
            let (value, source) = id.default_value();
            Limit {
                id,
                value,
                source: source.to_owned(),
            }
        });
        let mut made = Self { timing, limits };
        let Timing {
            heartbeat,
            election,
            source,
        } = &made.timing;
        let warn = (
            crate::measure::micros(*heartbeat) / 2,
            format!(
                "half of the heartbeat interval of {} ({source})",
                text::ms(crate::measure::micros(*heartbeat))
            ),
        );
        let fail = (
            crate::measure::micros(*election) / 10,
            format!(
                "a tenth of the election timeout of {} ({source})",
                text::ms(crate::measure::micros(*election))
            ),
        );
        let dial = (
            crate::measure::micros(*election).saturating_add(1_000_000),
            format!(
                "etcd gives each dial of a peer 1 s and the election timeout of {} ({source})",
                text::ms(crate::measure::micros(*election))
            ),
        );
        made.set(LimitId::EtcdRttWarn, warn.0, warn.1);
        made.set(LimitId::EtcdRttFail, fail.0, fail.1);
        made.set(LimitId::EtcdPeerConnectFail, dial.0, dial.1);
        made
    }

    /// The timing the etcd limits come from.
    #[must_use]
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// One limit.
    #[must_use]
    pub fn get(&self, id: LimitId) -> &Limit {
        &self.limits[id as usize]
    }

    /// Every limit, in table order.
    pub fn iter(&self) -> impl Iterator<Item = &Limit> {
        self.limits.iter()
    }

    /// Overrides one limit; `value` in the unit of [`LimitId::unit`], `source` in words, for example `--limit flag`.
    pub fn set(&mut self, id: LimitId, value: u64, source: impl Into<String>) {
        self.limits[id as usize] = Limit {
            id,
            value,
            source: source.into(),
        };
    }

    /// Overrides one limit as users write it: `etcd-rtt-fail=80ms`, `retransmit-rate-warn=2%`, `syn-retransmits-warn=1`.
    ///
    /// # Errors
    /// The name is unknown, or the value is not one of the limit's unit.
    pub fn set_written(&mut self, written: &str, source: &str) -> Result<(), LimitError> {
        let refuse = |reason: String| LimitError {
            written: written.to_owned(),
            reason,
        };
        let (name, value) = written
            .split_once('=')
            .ok_or_else(|| refuse("write NAME=VALUE, for example etcd-rtt-fail=80ms".to_owned()))?;
        let id = LimitId::ALL
            .into_iter()
            .find(|id| id.name() == name.trim())
            .ok_or_else(|| {
                let names = LimitId::ALL.map(LimitId::name).join(", ");
                refuse(format!(
                    "there is no limit of that name; choose from {names}"
                ))
            })?;
        let value = text::parse_in_unit(value.trim(), id.unit()).ok_or_else(|| {
            refuse(
                match id.unit() {
                    Unit::Micros => "the value is not a duration; write 500us, 80ms or 2s",
                    Unit::PartsPerMillion => {
                        "the value is not a share from 0 to 100 %; write it as 2%"
                    }
                    Unit::Count => "the value is not a whole number; write 0, 1, 2 …",
                }
                .to_owned(),
            )
        })?;
        if value == 0 && id.unit() == Unit::Micros {
            return Err(refuse(
                "no network answers in no time, so it would refuse every join; write 80ms or 2s"
                    .to_owned(),
            ));
        }
        self.set(id, value, source);
        Ok(())
    }
}

/// A limit that was refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("limit `{written}` cannot be used: {reason}")]
pub struct LimitError {
    written: String,
    reason: String,
}

#[cfg(test)]
mod tests {
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
}
