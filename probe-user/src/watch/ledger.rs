//! What was counted when, so that reports can tell what happened in between.

use std::collections::HashMap;

use crate::bpf::{Endpoint, Observer, ReadError};
use crate::config::ObserveConfig;
use crate::measure::{CompactCounts, SlotCounts, TargetMeasurement};
use crate::target::{Side, Target, TargetSpec};

/// All counts at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Moment(HashMap<Endpoint, CompactCounts>);

/// What one look at the counts gave.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// What happened since the earlier moment, one per endpoint that saw anything.
    pub(super) since: Vec<TargetMeasurement>,
    /// Everything since the observer was attached, one per endpoint.
    pub(super) totals: Vec<TargetMeasurement>,
    /// The counts of now.
    pub(super) now: Moment,
}

/// Reads all counts.
pub(super) fn look(
    observer: &Observer,
    config: &ObserveConfig,
    earlier: &Moment,
) -> Result<Look, ReadError> {
    let mut found = Vec::new();
    let mut now = HashMap::new();
    observer.each_endpoint(|endpoint, counts| {
        let compact = counts.compact();
        let total = measurement(config, endpoint, &counts);
        let since = match earlier.0.get(&endpoint) {
            Some(then) if *then == compact => None,
            Some(then) => Some(counts.since_compact(then)),
            None => Some(counts),
        };
        let since = since
            .filter(|counts| !counts.is_empty())
            .map(|counts| measurement(config, endpoint, &counts));
        now.insert(endpoint, compact);
        found.push((endpoint, total, since));
    })?;
    found.sort_by_key(|(endpoint, ..)| endpoint.order());
    let mut look = Look {
        now: Moment(now),
        ..Look::default()
    };
    for (_, total, since) in found {
        look.totals.push(total);
        look.since.extend(since);
    }
    Ok(look)
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
