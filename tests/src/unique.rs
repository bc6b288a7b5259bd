//! Names that say which process made a thing, so that leftovers can be told from what is in use.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use tempfile::TempDir;

/// Every namespace and scratch folder of the lab begins with this.
pub(crate) const PREFIX: &str = "jplab-";

static COUNTER: AtomicU32 = AtomicU32::new(0);

/// A name nobody else has: prefix, process id, counter.
pub(crate) fn name() -> String {
    format!(
        "{PREFIX}{}-{}",
        std::process::id(),
        COUNTER.fetch_add(1, Ordering::Relaxed)
    )
}

/// Whether `name` is the lab's and the process that made it is gone.
pub(crate) fn is_orphan(name: &str) -> bool {
    let owner = name
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.split('-').next());
    owner.and_then(|pid| pid.parse().ok()).is_some_and(is_gone)
}

/// Whether a process has ended, be it that its parent has not noticed yet (state `Z` in `/proc/PID/stat`).
fn is_gone(pid: u32) -> bool {
    // The name before the state is in brackets and may hold anything.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

/// Where scratch folders go: memory, where there is any, because etcd syncs every write.
pub(crate) fn scratch_root() -> PathBuf {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() {
        shm.to_path_buf()
    } else {
        std::env::temp_dir()
    }
}

/// A new empty folder that is removed with the returned value.
///
/// # Errors
/// When neither `/dev/shm` nor the temporary folder can be written.
pub fn scratch_dir() -> Result<TempDir> {
    let root = scratch_root();
    tempfile::Builder::new()
        .prefix(&format!("{}-", name()))
        .tempdir_in(&root)
        .with_context(|| format!("cannot make a folder in {}", root.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_labs_own_names_of_dead_processes_are_orphans() {
        assert!(!is_orphan(&name()));
        assert!(!is_orphan("cni-1234-0"));
        assert!(!is_orphan("jplab-x-0"));
        // Beyond the largest pid the kernel hands out (2^22).
        assert!(is_orphan("jplab-99999999-0"));
        assert!(is_orphan("jplab-99999999-3-AbCdEf"));
    }
}
