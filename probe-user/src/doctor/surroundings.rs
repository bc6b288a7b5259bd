//! Containers, filters and tracing files around this process.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::Check;

/// Inode numbers of the host's own namespaces (`include/linux/proc_ns.h`).
const HOST_PID: u64 = 0xefff_fffc;
const HOST_CGROUP: u64 = 0xefff_fffb;

pub(super) fn checks() -> Vec<Check> {
    vec![container(), cgroup_namespace(), seccomp(), tracefs()]
}

fn container() -> Check {
    const ID: &str = "container";
    let marked = ["/.dockerenv", "/run/.containerenv"]
        .iter()
        .find(|file| Path::new(file).exists());
    match marked {
        Some(file) => Check::note(
            ID,
            format!(
                "this is a container ({file}): share the host's network, or joinprobe sees only the container's \
                 connections, and name the host's files with --root"
            ),
        ),
        None if is(HOST_PID, "pid") == Some(false) => Check::note(
            ID,
            "this process is in a PID namespace, most likely a container: share the host's network, or joinprobe sees \
             only the container's connections",
        ),
        None => Check::pass(ID, "no sign of a container"),
    }
}

fn cgroup_namespace() -> Check {
    const ID: &str = "cgroup-namespace";
    if is(HOST_CGROUP, "cgroup") == Some(false) {
        return Check::warn(
            ID,
            "this process is in a cgroup namespace: what looks like the root of the hierarchy may be the container's own \
             cgroup, and then watch sees nothing of the host",
            "start the container with the host's cgroup namespace (--cgroupns=host); a preflight is not affected",
        );
    }
    Check::pass(ID, "this process sees the whole cgroup hierarchy")
}

fn is(inode: u64, namespace: &str) -> Option<bool> {
    let metadata = fs::metadata(format!("/proc/self/ns/{namespace}")).ok()?;
    Some(metadata.ino() == inode)
}

fn seccomp() -> Check {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    filtered(&status)
}

/// `Seccomp: 2` is a filter (proc(5)).
fn filtered(status: &str) -> Check {
    const ID: &str = "seccomp";
    let mode = status
        .lines()
        .find_map(|line| line.strip_prefix("Seccomp:"));
    if mode.map(str::trim) == Some("2") {
        return Check::note(
            ID,
            "a seccomp filter is on this process; where it forbids bpf(), nothing loads (see the first line)",
        );
    }
    Check::pass(ID, "no seccomp filter is on this process")
}

fn tracefs() -> Check {
    let there = [
        "/sys/kernel/tracing/events",
        "/sys/kernel/debug/tracing/events",
    ]
    .iter()
    .any(|path| Path::new(path).exists());
    let text = if there {
        "tracefs is mounted; joinprobe does not need it"
    } else {
        "tracefs is not mounted; joinprobe does not need it"
    };
    Check::note("tracefs", text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::CheckState;

    #[test]
    fn a_filter_is_seen() {
        assert_eq!(filtered("Name:\tx\nSeccomp:\t2\n").state, CheckState::Note);
        assert_eq!(filtered("Seccomp:\t0\n").state, CheckState::Pass);
        assert_eq!(filtered("").state, CheckState::Pass);
    }
}
