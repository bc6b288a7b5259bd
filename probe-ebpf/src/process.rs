//! Who opens a connection.

use core::arch::asm;
use core::ffi::c_void;

use aya_ebpf::helpers::generated::{bpf_get_current_task, bpf_probe_read_kernel_str};

use crate::config;
use crate::kernel_memory::read;

/// `PF_KTHREAD` (include/linux/sched.h): a thread of the kernel's own, which opens connections for others.
const KERNEL_THREAD: u32 = 0x0020_0000;
/// `TASK_COMM_LEN`, the final zero included.
const NAME_BYTES: u32 = 16;

/// The process that called `connect()`.
#[derive(Clone, Copy)]
pub(crate) struct Process {
    /// Its id (tgid); 0 where unknown.
    pub(crate) pid: u32,
    /// The first half of its name as it lies in memory; 0 from its end on, and where unknown. Two fields and no array, as
    /// in `EndpointKey`.
    pub(crate) start: u64,
    /// The other half.
    pub(crate) rest: u64,
}

/// Nobody that is known.
///
/// The compiler is not told that these are zeros: it would clear them together with a call of `memset`, which the verifier
/// refuses without `CAP_PERFMON`.
#[inline(always)]
pub(crate) fn unknown() -> Process {
    let zero: u64;
    // SAFETY: it sets a register.
    unsafe { asm!("{zero} = 0", zero = out(reg) zero, options(pure, nomem, nostack)) }
    Process {
        pid: 0,
        start: zero,
        rest: zero,
    }
}

/// Finds out who called `connect()`.
///
/// The callback of a connect runs inside the system call, so the current task is the caller. The name is that of the
/// process and not of the thread, which may be called otherwise: programs name their threads, and so does io_uring.
#[inline(always)]
pub(crate) fn caller() -> Option<Process> {
    let offsets = config::task_offsets()?;
    // SAFETY: the helper takes nothing.
    let task = unsafe { bpf_get_current_task() };
    // MPTCP opens further connections of a socket from a thread of the kernel.
    if read::<u32>(task, offsets.flags)? & KERNEL_THREAD != 0 {
        return None;
    }
    let pid = read::<u32>(task, offsets.tgid)?;
    let leader = read::<u64>(task, offsets.group_leader)?;
    let at = leader.wrapping_add(u64::from(offsets.comm)) as *const c_void;
    let mut name = [0_u64; 2];
    // Only up to its end: before 5.17 a name can be followed by what is left of a longer one before it.
    // SAFETY: the helper writes at most this many bytes, and checks the address that it reads.
    let length = unsafe { bpf_probe_read_kernel_str((&raw mut name).cast(), NAME_BYTES, at) };
    let [start, rest] = name;
    (length > 0).then_some(Process { pid, start, rest })
}
