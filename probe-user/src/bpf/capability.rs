//! Which capabilities this process has.

use std::fs;

/// A capability's name and its bit (include/uapi/linux/capability.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    /// As capabilities(7) writes it.
    pub name: &'static str,
    bit: u32,
}

/// Loading programs, making maps.
pub(super) const BPF: Capability = Capability {
    name: "CAP_BPF",
    bit: 39,
};
/// Programs that have to do with the network.
pub(super) const NET_ADMIN: Capability = Capability {
    name: "CAP_NET_ADMIN",
    bit: 12,
};
/// Reading kernel memory from programs.
pub(super) const PERFMON: Capability = Capability {
    name: "CAP_PERFMON",
    bit: 38,
};
/// Stands in for the three above, and mounts.
pub(super) const SYS_ADMIN: Capability = Capability {
    name: "CAP_SYS_ADMIN",
    bit: 21,
};

/// Lifting the limit of locked memory.
pub(super) const SYS_RESOURCE: Capability = Capability {
    name: "CAP_SYS_RESOURCE",
    bit: 24,
};
/// Looking at other users' processes.
pub(super) const SYS_PTRACE: Capability = Capability {
    name: "CAP_SYS_PTRACE",
    bit: 19,
};
/// Changing a thread's root.
pub(super) const SYS_CHROOT: Capability = Capability {
    name: "CAP_SYS_CHROOT",
    bit: 18,
};
/// All that joinprobe has a use for.
pub(super) const ALL: [Capability; 5] = [BPF, NET_ADMIN, PERFMON, SYS_ADMIN, SYS_RESOURCE];

/// The effective capabilities of this process; none where /proc does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Capabilities(u64);

impl Capabilities {
    /// Those of the running process.
    pub(super) fn effective() -> Self {
        Self::parse(&fs::read_to_string("/proc/self/status").unwrap_or_default())
    }

    fn parse(status: &str) -> Self {
        Self(
            status
                .lines()
                .find_map(|line| line.strip_prefix("CapEff:"))
                .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
                .unwrap_or(0),
        )
    }

    /// Whether the capability, or `CAP_SYS_ADMIN` in its place, is there.
    pub(super) fn has(self, capability: Capability) -> bool {
        self.0 & (1 << capability.bit | 1 << SYS_ADMIN.bit) != 0
    }

    /// Whether the capability itself is there.
    pub(super) fn is_set(self, capability: Capability) -> bool {
        self.0 & (1 << capability.bit) != 0
    }

    /// Names of those that are missing of `needed`.
    pub(super) fn missing(self, needed: &[Capability]) -> Vec<&'static str> {
        needed
            .iter()
            .filter(|capability| !self.has(**capability))
            .map(|capability| capability.name)
            .collect()
    }
}

/// Whether this process is in a user namespace of its own, where capabilities do not count for eBPF.
pub(super) fn in_user_namespace() -> bool {
    // The initial namespace maps every id to itself.
    fs::read_to_string("/proc/self/uid_map")
        .is_ok_and(|map| map.split_whitespace().collect::<Vec<_>>() != ["0", "0", "4294967295"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_is_missing() {
        let none = Capabilities::parse("Name:\tx\nCapEff:\t0000000000000000\n");
        assert_eq!(
            none.missing(&[BPF, NET_ADMIN]),
            ["CAP_BPF", "CAP_NET_ADMIN"]
        );
        let both = Capabilities::parse("CapEff:\t0000008000001000\n");
        assert!(both.missing(&[BPF, NET_ADMIN]).is_empty());
        assert!(!both.has(PERFMON));
        let root = Capabilities::parse("CapEff:\t000001ffffffffff\n");
        assert!(root.missing(&[BPF, NET_ADMIN]).is_empty());
        let admin = Capabilities::parse("CapEff:\t0000000000200000\n");
        assert!(admin.missing(&[BPF, NET_ADMIN]).is_empty());
    }
}
