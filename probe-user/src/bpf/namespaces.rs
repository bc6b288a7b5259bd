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

/// The network namespaces of other processes.
pub(super) struct Others {
    pub(super) open: Vec<File>,
    /// Whether some may not be looked at (`CAP_SYS_PTRACE`, for other users' processes).
    pub(super) forbidden: bool,
}

/// Every network namespace but this thread's that a process lives in or that has a name.
pub(super) fn others() -> Others {
    let mut seen: HashSet<u64> = fs::metadata(OWN).map(|own| own.ino()).into_iter().collect();
    let mut others = Others {
        open: Vec::new(),
        forbidden: false,
    };
    let processes = entries("/proc").map(|process| process.join("ns/net"));
    for path in processes.chain(entries(NAMED)) {
        let opened = fs::metadata(&path).and_then(|known| {
            let new = seen.insert(known.ino());
            new.then(|| File::open(&path)).transpose()
        });
        match opened {
            Ok(namespace) => others.open.extend(namespace),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                others.forbidden = true;
            }
            // What is no process, or has just ended.
            Err(_) => {}
        }
    }
    others
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
