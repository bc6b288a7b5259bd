//! Gives up what attaching needed and measuring does not.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};

use crate::config::ObserveConfig;

/// The first kernel that lets a process without `CAP_BPF` read maps it has open, whatever
/// `kernel.unprivileged_bpf_disabled` says (commit c8644cd0efe7).
const READS_UNPRIVILEGED: (u32, u32) = (5, 19);

/// Drops every capability of this thread but those that are still needed and those in `besides`, also for whatever it
/// might start. Capabilities are each thread's own: other threads drop theirs by [`drop_all`].
pub(super) fn drop_capabilities(
    config: &ObserveConfig,
    kernel_release: &str,
    besides: CapabilitySet,
) {
    report(try_drop(needed(config, kernel_release) | besides));
}

/// Drops every capability of a thread that only passes bytes on.
pub(crate) fn drop_all() {
    report(try_drop(CapabilitySet::empty()));
}

fn report(dropped: Result<(), Errno>) {
    if let Err(error) = dropped {
        log::warn!("capabilities that are no longer needed could not be dropped: {error}");
    }
}

fn needed(config: &ObserveConfig, kernel_release: &str) -> CapabilitySet {
    let mut needed = CapabilitySet::empty();
    if version(kernel_release).is_none_or(|version| version < READS_UNPRIVILEGED) {
        needed |= CapabilitySet::BPF;
    }
    // Files are replaced and appended to as long as the watch lasts, where root could write at the start.
    if config.textfile.is_some() || config.hlog.is_some() {
        needed |= CapabilitySet::DAC_OVERRIDE;
    }
    // A port that is taken is tried again.
    if config.listen.is_some_and(|address| address.port() < 1024) {
        needed |= CapabilitySet::NET_BIND_SERVICE;
    }
    needed
}

fn try_drop(needed: CapabilitySet) -> Result<(), Errno> {
    let held = capabilities(None)?;
    clear_ambient_capability_set()?;
    // Only with CAP_SETPCAP; without it what is not permitted cannot be gained by a file's capabilities either way.
    if held.effective.contains(CapabilitySet::SETPCAP) {
        for capability in CapabilitySet::all().difference(needed) {
            match remove_capability_from_bounding_set(capability) {
                // This kernel does not know it yet.
                Ok(()) | Err(Errno::INVAL) => {}
                Err(error) => return Err(error),
            }
        }
    }
    let kept = held.permitted & needed;
    set_capabilities(
        None,
        CapabilitySets {
            effective: kept,
            permitted: kept,
            inheritable: CapabilitySet::empty(),
        },
    )
}

/// `6.18.44-generic`: 6 and 18.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_releases() {
        assert_eq!(version("6.18.44-fc-v973"), Some((6, 18)));
        assert_eq!(version("5.10-rc1"), Some((5, 10)));
        assert_eq!(version("what"), None);
    }
}
