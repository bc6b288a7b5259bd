//! What to observe.

use std::net::SocketAddr;
use std::path::PathBuf;

use probe_common::endpoint::Role;

use super::stats::RttSource;

/// Which network namespaces are observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// joinprobe's own. Kernels before 5.15 cannot tell namespaces apart and observe all of them.
    #[default]
    OwnNamespace,
    /// All of the host, those of pods included.
    AllNamespaces,
}

/// What gets a slot of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// Each remote address.
    #[default]
    Targets,
    /// Each process's connections to each remote address, where the kernel tells who opens them (BTF, `CAP_PERFMON`).
    Processes,
}

/// Settings of an [`Observer`](super::Observer).
#[derive(Clone, Debug)]
pub struct ObserverConfig {
    /// Ports watched on both sides, whatever the address.
    pub ports: Vec<(u16, Role)>,
    /// Single remote addresses that are watched too; here the address decides, not its port's role.
    pub addresses: Vec<(SocketAddr, Role)>,
    /// Which network namespaces are observed.
    pub scope: Scope,
    /// What gets a histogram of its own.
    pub grouping: Grouping,
    /// How many of these, as a rule remote addresses, get a histogram of their own, from 1 to [`ObserverConfig::MAX_TARGETS`]; what comes
    /// after shares one per role. Each costs 100 KiB of kernel memory.
    pub max_targets: u32,
    /// Where RTT samples are to come from; `None`: the best that this kernel and these rights give.
    pub rtt_source: Option<RttSource>,
    /// Records only connections that [`OwnProbes::mark`](super::OwnProbes::mark) announced, whatever their port.
    pub own_only: bool,
    /// Sends events (opened, failed, closed).
    pub events: bool,
    /// Sends the kernel side's debug lines.
    pub kernel_log: bool,
    /// A cgroup v2 directory to attach to instead of the root of the hierarchy.
    pub cgroup: Option<PathBuf>,
}

impl ObserverConfig {
    /// The most that can have a histogram of their own: they fill 400 MiB.
    pub const MAX_TARGETS: u32 = 4096;

    /// `max_targets` within its limits.
    pub(super) fn targets(&self) -> u32 {
        self.max_targets.clamp(1, Self::MAX_TARGETS)
    }
}

impl Default for ObserverConfig {
    fn default() -> Self {
        Self {
            ports: Vec::new(),
            addresses: Vec::new(),
            scope: Scope::default(),
            grouping: Grouping::default(),
            max_targets: 64,
            rtt_source: None,
            own_only: false,
            events: false,
            kernel_log: false,
            cgroup: None,
        }
    }
}
