//! etcd's timing alone, for those who measure whatever they see.

use std::time::Duration;

use super::Hints;
use super::assemble::Assembly;
use super::discovery::Note;
use super::origin::Found;
use super::root::Root;

/// What this node's files say about etcd's timing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RaftTiming {
    /// etcd's heartbeat interval.
    pub heartbeat: Option<Found<Duration>>,
    /// etcd's election timeout.
    pub election: Option<Found<Duration>>,
    /// Files that are no good.
    pub notes: Vec<Note>,
}

/// Reads the manifest of this node's etcd member, and kubeadm's configuration for what that leaves open. Opens no
/// kubeconfig and no key.
#[must_use]
pub fn raft_timing(root: &Root) -> RaftTiming {
    Assembly::new(root).timing(&Hints::default())
}
