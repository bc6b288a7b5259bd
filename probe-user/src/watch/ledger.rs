//! What was counted when, so that reports can tell what happened in between.

use std::collections::HashMap;

use crate::bpf::{Endpoint, Observer, ReadError};
use crate::config::ObserveConfig;
use crate::measure::{CompactCounts, Opener, Sampled, SlotCounts, TargetMeasurement};
use crate::target::{Side, Target, TargetSpec};

/// All counts at one moment. Taking one is quick; what it means is worked out when there is time.
#[derive(Clone, Debug, Default)]
pub(super) struct Moment {
    counts: HashMap<Endpoint, CompactCounts>,
    /// Connections that were there before and are only sampled.
    sampled: HashMap<Endpoint, Sampled>,
}

impl Moment {
    /// Reads all counts.
    pub(super) fn now(observer: &Observer) -> Result<Self, ReadError> {
        let mut counts = HashMap::new();
        observer.each_endpoint(|endpoint, found| {
            counts.insert(endpoint, found.compact());
        })?;
        Ok(Self {
            counts,
            sampled: observer.sampled().cloned().unwrap_or_default(),
        })
    }

    /// What happened since `earlier`, one per endpoint that saw anything.
    pub(super) fn since(&self, earlier: &Self, config: &ObserveConfig) -> Vec<TargetMeasurement> {
        let counts = |endpoint: &Endpoint, now: &CompactCounts| match earlier.counts.get(endpoint) {
            Some(then) if then == now => None,
            Some(then) => Some(now.expand().since_compact(then)),
            None => Some(now.expand()),
        };
        let sampled = |endpoint: &Endpoint, now: &Sampled| match earlier.sampled.get(endpoint) {
            Some(then) if then == now && now.open == 0 => None,
            Some(then) => Some(now.since(then)),
            None => Some(now.clone()),
        };
        self.measurements(config, counts, sampled)
    }

    /// Everything since the observer was attached, one per endpoint.
    pub(super) fn totals(&self, config: &ObserveConfig) -> Vec<TargetMeasurement> {
        self.measurements(
            config,
            |_, now| Some(now.expand()),
            |_, now| Some(now.clone()),
        )
    }

    fn measurements(
        &self,
        config: &ObserveConfig,
        counts: impl Fn(&Endpoint, &CompactCounts) -> Option<SlotCounts>,
        sampled: impl Fn(&Endpoint, &Sampled) -> Option<Sampled>,
    ) -> Vec<TargetMeasurement> {
        let mut endpoints: Vec<_> = self.counts.keys().chain(self.sampled.keys()).collect();
        endpoints.sort_by_key(|endpoint| endpoint.order());
        endpoints.dedup();
        let measured = |endpoint: &Endpoint| {
            let counted = self.counts.get(endpoint);
            let counted = counted.and_then(|now| counts(endpoint, now));
            let counted = counted.filter(|counts| !counts.is_empty());
            let looked = self.sampled.get(endpoint);
            let looked = looked.and_then(|now| sampled(endpoint, now));
            if counted.is_none() && looked.is_none() {
                return None;
            }
            let mut measured = measurement(config, *endpoint, &counted.unwrap_or_default());
            measured.sampled = looked.map(Box::new);
            Some(measured)
        };
        endpoints.into_iter().filter_map(measured).collect()
    }
}

fn measurement(
    config: &ObserveConfig,
    endpoint: Endpoint,
    counts: &SlotCounts,
) -> TargetMeasurement {
    let spec = match endpoint.remote {
        Some(remote) => TargetSpec {
            role: endpoint.role,
            host: remote.ip().to_string(),
            port: remote.port(),
        },
        None => TargetSpec {
            role: endpoint.role,
            host: match endpoint.side {
                Side::Server => "local",
                Side::Client => "other",
            }
            .to_owned(),
            port: config.port_of(endpoint.role),
        },
    };
    TargetMeasurement {
        target: Target {
            spec,
            address: endpoint.remote,
        },
        side: endpoint.side,
        opener: Opener {
            netns: endpoint.netns,
            process: endpoint.process,
        },
        distributions: counts.distributions(),
        counters: counts.counters(),
        sampled: None,
        probe: None,
    }
}
