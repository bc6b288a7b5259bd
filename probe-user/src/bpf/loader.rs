//! aya's loader, without the kernel's type information.
//!
//! [`EbpfLoader::new`] reads and parses all of it, for relocations that this object does not have. That takes a quarter of
//! the time to start and most of the memory at the peak, and there is no other way to make a loader. So it is made where
//! the file cannot be seen: in a thread that has an empty folder for its root.

use std::thread;

use aya::EbpfLoader;
use rustix::process::chroot;
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::capability::{Capabilities, SYS_CHROOT};

/// A folder without `sys/kernel/btf/vmlinux` in it, on every Linux.
const WITHOUT_TYPES: &str = "/proc/self/fdinfo";

/// A loader. Where the root may not be changed, it has read what it does not need.
pub(super) fn new() -> EbpfLoader<'static> {
    if !Capabilities::effective().has(SYS_CHROOT) {
        return EbpfLoader::new();
    }
    let made = thread::Builder::new().spawn(|| {
        hide_types();
        EbpfLoader::new()
    });
    let made = made.ok().and_then(|thread| thread.join().ok());
    made.unwrap_or_default()
}

/// Hides the kernel's type information from this thread.
fn hide_types() {
    // SAFETY: only the file table is unsafe to part with, for its descriptors are shared; this parts with root, working
    // directory and umask.
    let alone = unsafe { unshare_unsafe(UnshareFlags::FS) };
    // Never before: the root would be the whole process's.
    let hidden = alone.and_then(|()| chroot(WITHOUT_TYPES));
    if let Err(error) = hidden {
        log::debug!("the kernel's types are read once more than needed: {error}");
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn other_threads_keep_their_root() {
        let seen = thread::spawn(|| {
            hide_types();
            Path::new("/proc").exists()
        });
        let seen = seen.join().unwrap();
        assert!(Path::new("/proc/self").exists());
        if Capabilities::effective().has(SYS_CHROOT) {
            assert!(!seen, "the types are not hidden");
        }
        let root = fs::read_link("/proc/self/root").unwrap();
        assert_eq!(root, Path::new("/"));
    }
}
