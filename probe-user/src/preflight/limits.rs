//! The limits a configuration asks for.

use std::time::Duration;

use crate::config::TimingChoice;
use crate::discover::Found;
use crate::verdict::{Limits, Timing};

/// Limits derived from the cluster's timing, or from etcd's defaults where it is not known.
pub(crate) fn resolve(choice: &TimingChoice) -> Limits {
    let defaults = Timing::default();
    let name = |found: &Option<Found<Duration>>, default: &str| match found {
        Some(found) => found.origin.to_string(),
        None => default.to_owned(),
    };
    let source = match (&choice.heartbeat, &choice.election) {
        (None, None) => defaults.source,
        (heartbeat, election) => format!(
            "{}, {}",
            name(heartbeat, "etcd's default heartbeat"),
            name(election, "etcd's default election timeout")
        ),
    };
    let value = |found: &Option<Found<Duration>>, default| {
        found.as_ref().map_or(default, |found| found.value)
    };
    Limits::from_timing(Timing {
        heartbeat: value(&choice.heartbeat, defaults.heartbeat),
        election: value(&choice.election, defaults.election),
        source,
    })
}
