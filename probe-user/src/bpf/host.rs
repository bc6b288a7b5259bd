//! What a host offers, piece by piece: for `joinprobe doctor`.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;

use super::btf::KernelTypes;
use super::capability::{self, Capabilities, Capability};
use super::cgroup;
use super::hook;
use super::kernel::Kernel;

/// Release and version (major, minor) of the running kernel; (0, 0) where the release does not start with a version.
#[must_use]
pub fn kernel() -> (String, (u32, u32)) {
    let kernel = Kernel::running();
    (kernel.release, kernel.version)
}

/// Whether the kernel's type information can be read.
///
/// # Errors
/// The kernel was built without (`CONFIG_DEBUG_INFO_BTF`), or it is damaged.
pub fn kernel_types() -> io::Result<()> {
    KernelTypes::running().map(drop)
}

/// The capabilities that joinprobe has a use for, and whether this process has each of them itself.
#[must_use]
pub fn capabilities() -> Vec<(Capability, bool)> {
    let effective = Capabilities::effective();
    capability::ALL
        .iter()
        .map(|capability| (*capability, effective.is_set(*capability)))
        .collect()
}

/// Whether this process is in a user namespace of its own, where the kernel grants no eBPF.
#[must_use]
pub fn in_user_namespace() -> bool {
    capability::in_user_namespace()
}

/// The limit of locked memory, bytes; `None` for no limit.
#[must_use]
pub fn locked_memory_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Memlock).current
}

/// What hangs on the `sock_ops` hook of the root of the cgroup v2 hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnHook {
    /// Ids and names, as `program 17 (cil_sock)`; empty when there are none.
    pub programs: Vec<String>,
    /// Whether they let no other program attach.
    pub exclusive: bool,
}

/// Asks what hangs on the hook that joinprobe attaches to.
///
/// # Errors
/// There is no hierarchy, or this process may not ask (`CAP_NET_ADMIN`).
pub fn on_hook(chosen: Option<&std::path::Path>) -> io::Result<OnHook> {
    let (directory, _): (File, _) =
        cgroup::open(chosen).map_err(|error| io::Error::other(error.to_string()))?;
    hook::on(directory.as_fd()).map(|(programs, exclusive)| OnHook {
        programs,
        exclusive,
    })
}
