//! The cluster's timing, as it is known by now.

use crate::config::{ObserveConfig, TimingChoice};
use crate::discover::{RaftTiming, Root, raft_timing};

/// Reads it from this node's files as long as it was not given. kubeadm writes etcd's manifest in the middle of a join,
/// so a report later it may be there.
pub(super) struct KnownTiming {
    given: TimingChoice,
    root: Option<Root>,
    found: RaftTiming,
}

impl KnownTiming {
    pub(super) fn new(config: &ObserveConfig) -> Self {
        let given = config.decision.timing.clone();
        let complete = given.heartbeat.is_some() && given.election.is_some();
        let mut timing = Self {
            root: config.root.clone().filter(|_| !complete),
            given,
            found: RaftTiming::default(),
        };
        timing.look_again();
        timing
    }

    /// Looks through the files; whether they say something new.
    pub(super) fn look_again(&mut self) -> bool {
        let Some(root) = &self.root else {
            return false;
        };
        let found = raft_timing(root);
        if found == self.found {
            return false;
        }
        for note in found.notes.iter().filter(|note| note.warns) {
            log::warn!("{}", note.text);
        }
        let news =
            (&found.heartbeat, &found.election) != (&self.found.heartbeat, &self.found.election);
        self.found = found;
        news
    }

    pub(super) fn choice(&self) -> TimingChoice {
        let either = |given: &Option<_>, found: &Option<_>| given.clone().or_else(|| found.clone());
        TimingChoice {
            heartbeat: either(&self.given.heartbeat, &self.found.heartbeat),
            election: either(&self.given.election, &self.found.election),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    use super::*;

    const MANIFEST: &str = include_str!("../../tests/fixtures/kubeadm-1.20/etcd.yaml");

    fn timing(root: &Path) -> KnownTiming {
        let mut timing = KnownTiming {
            given: TimingChoice::default(),
            root: Some(Root::at(root)),
            found: RaftTiming::default(),
        };
        timing.look_again();
        timing
    }

    #[test]
    fn a_manifest_that_comes_later_counts_from_then_on() {
        let root = tempfile::tempdir().unwrap();
        let mut timing = timing(root.path());
        assert!(timing.choice().heartbeat.is_none());
        let folder = root.path().join("etc/kubernetes/manifests");
        fs::create_dir_all(&folder).unwrap();
        let manifest = MANIFEST.replace(
            "    - --name=",
            "    - --heartbeat-interval=500\n    - --election-timeout=5000\n    - --name=",
        );
        fs::write(folder.join("etcd.yaml"), manifest).unwrap();
        assert!(timing.look_again());
        let value = |found: Option<crate::discover::Found<Duration>>| found.unwrap().value;
        assert_eq!(value(timing.choice().heartbeat), Duration::from_millis(500));
        assert_eq!(value(timing.choice().election), Duration::from_secs(5));
        assert!(!timing.look_again());
    }

    #[test]
    fn a_manifest_that_is_no_good_changes_nothing() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("etc/kubernetes/manifests");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("etcd.yaml"), "{").unwrap();
        let mut timing = timing(root.path());
        assert_eq!(timing.found.notes.len(), 1);
        assert!(timing.choice().election.is_none());
        assert!(!timing.look_again());
    }
}
