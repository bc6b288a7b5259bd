//! The cluster's own raft timing, and ready-made settings for known kinds of cluster.

use std::time::Duration;

use super::limits::{LimitId, Limits};

/// etcd's raft timing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// `--heartbeat-interval`.
    pub heartbeat: Duration,
    /// `--election-timeout`.
    pub election: Duration,
    /// Where the two come from, in words: `etcd defaults`, `--etcd-heartbeat and --etcd-election`, a manifest's path.
    pub source: String,
}

impl Default for Timing {
    /// etcd's defaults: 100 ms and 1000 ms.
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_millis(100),
            election: Duration::from_secs(1),
            source: "etcd defaults".to_owned(),
        }
    }
}

/// A ready-made set of limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// etcd's default timing.
    #[default]
    Default,
    /// `OpenShift`: default timing, and the RTT it asks for between control-plane nodes (50 ms) is the fail limit.
    Openshift,
    /// Members in several sites, with the slower raft timing made for them: heartbeat 500 ms, election 2500 ms.
    Stretched,
    /// Members in one building: RTTs far below what raft needs are already a sign of a fault.
    Lan,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Self; 4] = [Self::Default, Self::Openshift, Self::Stretched, Self::Lan];

    /// What users write.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Openshift => "openshift",
            Self::Stretched => "stretched",
            Self::Lan => "lan",
        }
    }

    /// The timing that such a cluster is taken to have while its own is not known.
    #[must_use]
    pub fn timing(self) -> Timing {
        match self {
            Self::Stretched => Timing {
                heartbeat: Duration::from_millis(500),
                election: Duration::from_millis(2500),
                source: "profile stretched".to_owned(),
            },
            _ => Timing::default(),
        }
    }

    /// The profile's limits for a cluster with this timing.
    #[must_use]
    pub fn limits(self, timing: Timing) -> Limits {
        let mut limits = Limits::from_timing(timing);
        match self {
            Self::Default | Self::Stretched => {}
            Self::Openshift => {
                let source = "profile openshift: less than 50 ms between control-plane nodes";
                limits.set(
                    LimitId::EtcdRttWarn,
                    25_000,
                    "profile openshift: half of what it asks for",
                );
                limits.set(LimitId::EtcdRttFail, 50_000, source);
            }
            Self::Lan => {
                limits.set(LimitId::EtcdRttWarn, 2_000, "profile lan: one building");
                limits.set(LimitId::EtcdRttFail, 10_000, "profile lan: one building");
                limits.set(
                    LimitId::ApiserverRttWarn,
                    10_000,
                    "profile lan: one building",
                );
                limits.set(
                    LimitId::ApiserverRttFail,
                    100_000,
                    "profile lan: one building",
                );
            }
        }
        limits
    }
}
