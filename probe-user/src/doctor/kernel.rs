//! The kernel: version, type information, lockdown, locked memory.

use super::Check;
use crate::bpf::{host, lockdown};

/// What the maps take at most with the default of 64 targets, rounded up.
const ENOUGH: u64 = 64 << 20;

pub(super) fn checks() -> Vec<Check> {
    let (release, version) = host::kernel();
    vec![
        kernel(&release, version),
        types(host::kernel_types()),
        lockdown(lockdown::mode().as_deref()),
        locked_memory(version, host::locked_memory_limit()),
    ]
}

fn kernel(release: &str, version: (u32, u32)) -> Check {
    if version != (0, 0) && version < (5, 10) {
        return Check::fail(
            "kernel",
            format!("kernel {release} is too old"),
            "use Linux 5.10 or newer",
        );
    }
    Check::pass("kernel", format!("kernel {release}"))
}

fn types(read: std::io::Result<()>) -> Check {
    match read {
        Ok(()) => Check::pass("btf", "the kernel's type information (BTF) is there"),
        Err(error) => Check::warn(
            "btf",
            format!(
                "the kernel's type information (BTF) is not there ({error}): causes of failed connections and names of \
                 processes are lost, and below Linux 6.10 raw RTT samples"
            ),
            "use a kernel with CONFIG_DEBUG_INFO_BTF, and show /sys/kernel/btf in containers",
        ),
    }
}

fn lockdown(mode: Option<&str>) -> Check {
    const ID: &str = "lockdown";
    match mode {
        Some(mode) if lockdown::forbids_reading(mode) => Check::warn(
            ID,
            format!(
                "the kernel is locked down ({mode}): eBPF may not read kernel memory, so causes of failed connections, names \
                 of processes and existing connections are lost, and below Linux 6.10 exact RTT samples"
            ),
            "boot with lockdown=integrity, or live without them",
        ),
        Some(mode) => Check::pass(ID, format!("lockdown is {mode}: eBPF is not held back")),
        None => Check::note(
            ID,
            "whether the kernel is locked down cannot be seen: it cannot be, or securityfs is not mounted",
        ),
    }
}

fn locked_memory(version: (u32, u32), limit: Option<u64>) -> Check {
    const ID: &str = "memlock";
    if version >= (5, 11) || version == (0, 0) {
        return Check::pass(ID, "this kernel does not count eBPF maps as locked memory");
    }
    let lifts = host::capabilities()
        .iter()
        .any(|(capability, there)| *there && capability.name == "CAP_SYS_RESOURCE");
    match limit {
        Some(limit) if limit < ENOUGH && !lifts => Check::warn(
            ID,
            format!(
                "this kernel counts eBPF maps as locked memory, and the limit is {} KiB",
                limit >> 10
            ),
            "raise it (ulimit -l unlimited, LimitMEMLOCK=infinity) or give CAP_SYS_RESOURCE",
        ),
        _ => Check::pass(
            ID,
            "this kernel counts eBPF maps as locked memory; the limit is high enough or can be lifted",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::CheckState;

    #[test]
    fn only_confidentiality_takes_something() {
        for (state, expected) in [
            (None, CheckState::Note),
            (Some("none"), CheckState::Pass),
            (Some("integrity"), CheckState::Pass),
            (Some("confidentiality"), CheckState::Warn),
        ] {
            assert_eq!(lockdown(state).state, expected, "{state:?}");
        }
    }

    #[test]
    fn old_kernels_are_refused_and_unknown_ones_are_not() {
        assert_eq!(kernel("5.4.0-200", (5, 4)).state, CheckState::Fail);
        assert_eq!(kernel("5.10.0", (5, 10)).state, CheckState::Pass);
        assert_eq!(kernel("next", (0, 0)).state, CheckState::Pass);
        assert_eq!(locked_memory((6, 1), Some(0)).state, CheckState::Pass);
        assert_eq!(locked_memory((5, 10), None).state, CheckState::Pass);
    }
}
