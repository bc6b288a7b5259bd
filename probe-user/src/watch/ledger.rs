//! What was counted when, so that reports can tell what happened in between.

use std::collections::HashMap;

use crate::bpf::{Endpoint, Observer, ReadError};
use crate::config::ObserveConfig;
use crate::measure::{CompactCounts, SlotCounts, TargetMeasurement};
use crate::target::{Side, Target, TargetSpec};

/// All counts at one moment. Taking one is quick; what it means is worked out when there is time.
#[derive(Clone, Debug, Default)]
pub(super) struct Moment(HashMap<Endpoint, CompactCounts>);

impl Moment {
    /// Reads all counts.
    pub(super) fn now(observer: &Observer) -> Result<Self, ReadError> {
        let mut counts = HashMap::new();
        observer.each_endpoint(|endpoint, found| {
            counts.insert(endpoint, found.compact());
        })?;
        Ok(Self(counts))
    }

    /// What happened since `earlier`, one per endpoint that saw anything.
    pub(super) fn since(&self, earlier: &Self, config: &ObserveConfig) -> Vec<TargetMeasurement> {
        self.measurements(config, |endpoint, now| match earlier.0.get(endpoint) {
            Some(then) if then == now => None,
            Some(then) => Some(now.expand().since_compact(then)),
            None => Some(now.expand()),
        })
    }

    /// Everything since the observer was attached, one per endpoint.
    pub(super) fn totals(&self, config: &ObserveConfig) -> Vec<TargetMeasurement> {
        self.measurements(config, |_, now| Some(now.expand()))
    }

    fn measurements(
        &self,
        config: &ObserveConfig,
        counts: impl Fn(&Endpoint, &CompactCounts) -> Option<SlotCounts>,
    ) -> Vec<TargetMeasurement> {
        let mut entries: Vec<_> = self.0.iter().collect();
        entries.sort_by_key(|(endpoint, _)| endpoint.order());
        entries
            .into_iter()
            .filter_map(|(endpoint, now)| Some((endpoint, counts(endpoint, now)?)))
            .filter(|(_, counts)| !counts.is_empty())
            .map(|(endpoint, counts)| measurement(config, *endpoint, &counts))
            .collect()
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
        distributions: counts.distributions(),
        counters: counts.counters(),
        probe: None,
    }
}
