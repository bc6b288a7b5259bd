//! Why observing is impossible: each one sentence with the reason and the remedy.

use std::io;
use std::path::PathBuf;

/// Why the observer could not be attached.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Not allowed: capabilities are missing.
    #[error(
        "not allowed to observe TCP: {missing} missing; run joinprobe as root, or with the capabilities CAP_BPF and \
         CAP_NET_ADMIN (AmbientCapabilities= in a systemd unit)"
    )]
    MissingCapability {
        /// `CAP_BPF is`, or `CAP_BPF and CAP_NET_ADMIN are`.
        missing: String,
    },
    /// Not allowed: capabilities count only in the initial user namespace.
    #[error(
        "not allowed to observe TCP: joinprobe runs inside a user namespace, where the kernel grants no eBPF; run it on \
         the host, outside rootless containers"
    )]
    UserNamespace,
    /// Not allowed, for a reason the kernel does not tell.
    #[error(
        "not allowed to observe TCP: the kernel refused to {call} although CAP_BPF and CAP_NET_ADMIN are there; a container's \
         seccomp filter or a security module forbids it, so run joinprobe directly on the host"
    )]
    Forbidden {
        /// The refused step.
        call: &'static str,
    },
    /// Not allowed: old kernels count maps as locked memory.
    #[error(
        "not allowed to observe TCP: kernel {release} counts eBPF maps as locked memory and the limit is too low; run \
         joinprobe as root or raise it (ulimit -l unlimited, LimitMEMLOCK=infinity)"
    )]
    LockedMemory {
        /// As `uname -r` says.
        release: String,
    },
    /// Not supported: too old.
    #[error("not supported: kernel {release} is too old; joinprobe needs Linux 5.10 or newer")]
    KernelTooOld {
        /// As `uname -r` says.
        release: String,
    },
    /// Not supported: built without eBPF.
    #[error(
        "not supported: kernel {release} has no bpf() system call for this (CONFIG_BPF_SYSCALL, CONFIG_CGROUP_BPF); use a \
         kernel that has it"
    )]
    NoBpf {
        /// As `uname -r` says.
        release: String,
    },
    /// The verifier said no.
    #[error(
        "kernel {release} refused joinprobe's eBPF program: {reason}; please report this with the output of `joinprobe \
         doctor`"
    )]
    Refused {
        /// As `uname -r` says.
        release: String,
        /// The verifier's last words.
        reason: String,
    },
    /// The committed object does not fit this program.
    #[error("joinprobe was built with an eBPF object that does not fit it: {0}; rebuild joinprobe")]
    Object(String),
    /// There is no cgroup v2 hierarchy and none can be mounted.
    #[error(
        "no cgroup v2 hierarchy is mounted and joinprobe could not mount one privately: {error}; run as root, or mount \
         one (mount -t cgroup2 none /sys/fs/cgroup/unified)"
    )]
    NoCgroup2 {
        /// Why mounting failed.
        error: io::Error,
    },
    /// The cgroup directory cannot be opened.
    #[error("cannot open the cgroup v2 directory {}: {error}; give a directory of a cgroup v2 hierarchy", path.display())]
    Cgroup {
        /// The directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Another program owns the hook.
    #[error(
        "cannot attach to the cgroup {}: its sock_ops hook is held by {programs}, which was attached without sharing \
         (BPF_F_ALLOW_MULTI); stop the program that attached it, or have it attach shared", path.display()
    )]
    HookTaken {
        /// The cgroup directory.
        path: PathBuf,
        /// Ids and names of the programs.
        programs: String,
    },
    /// The source of RTT samples that was asked for cannot be had.
    #[error(
        "RTT samples cannot be {source_name} here: {reason}; leave --rtt-source at auto for the best that can be had"
    )]
    Source {
        /// `raw` or `reconstructed`.
        source_name: &'static str,
        /// Why not.
        reason: String,
    },
    /// Anything else.
    #[error("cannot {what}: {error}")]
    Io {
        /// The step.
        what: &'static str,
        /// Why.
        error: io::Error,
    },
}

/// Why the kernel's measurements could not be read or a connection not be marked.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}: {error}")]
pub struct ReadError {
    /// The step.
    pub what: &'static str,
    /// Why.
    pub error: io::Error,
}
