//! Removes what killed lab processes left behind.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use super::run;
use crate::bpf::cgroup_root;
use crate::programs::command;
use crate::unique::{is_orphan, scratch_root};

/// Namespaces, the processes still in them, pinned programs, cgroups and scratch folders whose maker is dead. Best effort: another process may
/// be sweeping the same things right now.
pub(super) fn remove_orphans() {
    for name in orphans(Path::new("/run/netns")) {
        // Only the lab starts processes in the lab's namespaces.
        if let Ok(output) = command("ip").args(["netns", "pids", &name]).output() {
            let pids = String::from_utf8_lossy(&output.stdout);
            for pid in pids
                .split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .filter_map(Pid::from_raw)
            {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        let _ = run(command("ip").args(["netns", "del", &name]));
    }
    for pinned in orphans(Path::new("/sys/fs/bpf")) {
        let _ = fs::remove_file(Path::new("/sys/fs/bpf").join(pinned));
    }
    if let Ok(cgroups) = cgroup_root() {
        for cgroup in orphans(&cgroups) {
            let _ = fs::remove_dir(cgroups.join(cgroup));
        }
    }
    let root = scratch_root();
    for name in orphans(&root) {
        let _ = fs::remove_dir_all(root.join(name));
    }
}

fn orphans(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| is_orphan(name))
        .collect()
}
