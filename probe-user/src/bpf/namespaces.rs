//! The network namespaces of this host.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// This thread's namespace.
const OWN: &str = "/proc/thread-self/ns/net";
/// Where iproute2 keeps those that need no process.
const NAMED: &str = "/run/netns";

/// Every network namespace but this thread's that a process lives in or that has a name; those that may not be opened
/// (`CAP_SYS_PTRACE`, for other users' processes) are left out.
pub(super) fn others() -> Vec<File> {
    let mut seen: HashSet<u64> = fs::metadata(OWN).map(|own| own.ino()).into_iter().collect();
    let processes = entries("/proc").map(|process| process.join("ns/net"));
    processes
        .chain(entries(NAMED))
        .filter_map(|path| {
            let inode = fs::metadata(&path).ok()?.ino();
            seen.insert(inode).then(|| File::open(path).ok()).flatten()
        })
        .collect()
}

fn entries(folder: &str) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
}

/// Runs `work` on a thread of its own in a network namespace.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`, `EINVAL` for a file that is no network namespace.
pub(super) fn inside<T: Send>(namespace: &File, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(work())
        });
        worker
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread died")))
    })
}
