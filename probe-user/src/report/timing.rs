//! Raft timing for what saved measurements show.

use std::collections::BTreeMap;

use probe_common::cells::Measure;

use super::merge::Merged;
use super::record::Values;
use crate::measure::{Counters, Distributions, Opener, TargetMeasurement};
use crate::target::{Role, RoleName as _, Side, Target, parse};
use crate::verdict::{Policy, Recommendation, Timing, recommend};

/// The recommendation for the farthest etcd member in the files; `None` when none of them has a whole distribution of
/// one.
pub(super) fn recommendation(merged: &Merged, timing: &Timing) -> Option<Recommendation> {
    let measured = members(merged);
    let policy = Policy {
        looks: 1,
        targets: u32::try_from(measured.len()).unwrap_or(u32::MAX).max(1),
        ..Policy::default()
    };
    recommend(&measured, timing, &policy)
}

/// What was measured towards etcd members, put together again by target.
fn members(merged: &Merged) -> Vec<TargetMeasurement> {
    let mut targets: BTreeMap<(&str, &str, &str), TargetMeasurement> = BTreeMap::new();
    for (place, group) in &merged.groups {
        let role = [Role::EtcdClient, Role::EtcdPeer]
            .into_iter()
            .find(|role| role.name() == place.role && place.side == "client");
        let Some((role, spec)) =
            role.and_then(|role| Some((role, parse(role, &place.target).ok()?)))
        else {
            continue;
        };
        let measured = targets
            .entry((role.name(), &place.target, &place.node))
            .or_insert_with(|| TargetMeasurement {
                opener: Opener::default(),
                sampled: None,
                target: Target {
                    spec,
                    address: None,
                },
                side: Side::Client,
                distributions: Distributions::default(),
                counters: Counters::default(),
                probe: None,
            });
        let distributions = &mut measured.distributions;
        let kept = match place.values {
            Values::Samples(Measure::Handshake) => &mut distributions.handshake,
            Values::Samples(Measure::Path) => &mut distributions.path,
            Values::Samples(Measure::SegmentMin) => &mut distributions.segment_min,
            // Estimates of the kernel's decide nothing.
            Values::Samples(Measure::Connect | Measure::Segment)
            | Values::SampledSmoothed
            | Values::SampledMinimum => continue,
        };
        // Who opened the connections does not matter; both have the kernel side's range, so adding cannot fail.
        let _ = kept.add(&group.total.distribution);
    }
    targets.into_values().collect()
}
