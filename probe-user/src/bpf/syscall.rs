//! System calls that no library here wraps, as safe functions.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::{c_int, c_uint, c_ulong};

/// `SO_NETNS_COOKIE` (5.14).
const SO_NETNS_COOKIE: c_int = 71;

/// The cookie of this process's network namespace; `None` where the kernel has none (before 5.14).
///
/// # Errors
/// No socket can be made.
pub(super) fn netns_cookie() -> io::Result<Option<u64>> {
    use rustix::net::{AddressFamily, SocketType, socket};
    // A namespace without IPv4 is rare, one without both unheard of.
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)
        .or_else(|_| socket(AddressFamily::INET6, SocketType::STREAM, None))?;
    let mut cookie: u64 = 0;
    let mut length: libc::socklen_t = 8;
    // SAFETY: value and length point to valid memory of the size that `length` says.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    Ok((status == 0 && cookie != 0).then_some(cookie))
}

/// Lifts this process's limit of locked memory, against which kernels before 5.11 count maps.
///
/// # Errors
/// `EPERM` without `CAP_SYS_RESOURCE`.
pub(super) fn lift_memlock_limit() -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let unlimited = Rlimit {
        current: None,
        maximum: None,
    };
    Ok(setrlimit(Resource::Memlock, unlimited)?)
}

/// Gives freed memory back to the kernel.
///
/// Reading the kernel's type information takes megabytes for a moment, which glibc would keep for later; other C
/// libraries return blocks of that size at once.
pub(super) fn return_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it only releases pages that hold no allocation.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// What hangs on a cgroup's hook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attached {
    /// `BPF_F_ALLOW_OVERRIDE` (1), `BPF_F_ALLOW_MULTI` (2), or 0 for an exclusive program.
    pub(super) flags: u32,
    /// Program ids, in the order they run.
    pub(super) programs: Vec<u32>,
}

/// The `query` member of `union bpf_attr` (include/uapi/linux/bpf.h), as far as 4.15 has it.
#[repr(C)]
#[derive(Default)]
struct QueryAttr {
    target_fd: u32,
    attach_type: u32,
    query_flags: u32,
    attach_flags: u32,
    prog_ids: u64,
    prog_cnt: u32,
    reserved: u32,
}

/// Asks which programs hang on the `sock_ops` hook of a cgroup (`BPF_PROG_QUERY`).
///
/// # Errors
/// `EPERM` without `CAP_NET_ADMIN`; `EINVAL` on kernels without it.
pub(super) fn attached_sock_ops(cgroup: BorrowedFd<'_>) -> io::Result<Attached> {
    const BPF_PROG_QUERY: c_int = 16;
    const BPF_CGROUP_SOCK_OPS: u32 = 3;
    // The kernel allows 64 programs on a hook (BPF_CGROUP_MAX_PROGS).
    let mut programs = vec![0_u32; 64];
    let mut attr = QueryAttr {
        target_fd: cgroup.as_raw_fd().cast_unsigned(),
        attach_type: BPF_CGROUP_SOCK_OPS,
        prog_ids: programs.as_mut_ptr() as u64,
        prog_cnt: c_uint::try_from(programs.len()).unwrap_or(0),
        ..QueryAttr::default()
    };
    // SAFETY: `attr` is a zero-padded prefix of `union bpf_attr` of the size given, and `prog_ids` points to
    // `prog_cnt` writable words.
    let status = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_PROG_QUERY,
            &raw mut attr,
            size_of::<QueryAttr>() as c_ulong,
        )
    };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    programs.truncate(attr.prog_cnt as usize);
    Ok(Attached {
        flags: attr.attach_flags,
        programs,
    })
}
