//! Who opens a connection.

use aya_ebpf::helpers::generated::bpf_get_current_task;

use crate::config;
use crate::flow::Flow;
use crate::kernel_memory::read;

/// `PF_KTHREAD` (include/linux/sched.h): a thread of the kernel's own, which opens connections for others.
const KERNEL_THREAD: u32 = 0x0020_0000;

/// Notes the process that called `connect()`.
///
/// The callback of a connect runs inside the system call, so the current task is the caller. The name is that of the
/// process and not of the thread, which may be called otherwise: programs name their threads, and so does io_uring.
#[inline(always)]
pub(crate) fn note(flow: &mut Flow) {
    let Some(offsets) = config::task_offsets() else {
        return;
    };
    // SAFETY: the helper takes nothing.
    let task = unsafe { bpf_get_current_task() };
    // MPTCP opens further connections of a socket from a thread of the kernel.
    let Some(flags) = read::<u32>(task, offsets.flags) else {
        return;
    };
    if flags & KERNEL_THREAD != 0 {
        return;
    }
    let (Some(pid), Some(leader)) = (
        read::<u32>(task, offsets.tgid),
        read::<u64>(task, offsets.group_leader),
    ) else {
        return;
    };
    let Some(name) = read::<[u64; 2]>(leader, offsets.comm) else {
        return;
    };
    flow.pid = pid;
    flow.comm = name;
}
