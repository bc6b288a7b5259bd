//! The limits a configuration asks for.

use crate::config::TimingChoice;
use crate::verdict::{Limits, Timing};

/// Limits derived from the cluster's timing, or from etcd's defaults where it is not known.
pub(super) fn resolve(choice: TimingChoice) -> Limits {
    let defaults = Timing::default();
    let source = match (choice.heartbeat, choice.election) {
        (None, None) => defaults.source,
        (Some(_), None) => "--etcd-heartbeat, etcd's default election timeout".to_owned(),
        (None, Some(_)) => "etcd's default heartbeat, --etcd-election".to_owned(),
        (Some(_), Some(_)) => "--etcd-heartbeat, --etcd-election".to_owned(),
    };
    Limits::from_timing(Timing {
        heartbeat: choice.heartbeat.unwrap_or(defaults.heartbeat),
        election: choice.election.unwrap_or(defaults.election),
        source,
    })
}
