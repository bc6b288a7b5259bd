//! Where the kernel keeps the name of the process that opens a connection.

use aya::EbpfLoader;
use aya::programs::ProgramType;
use aya::sys::{BpfHelper, is_helper_supported};

use super::btf::KernelTypes;

/// Offsets of fields of `struct task_struct` (include/linux/sched.h), in bytes; all 0 where tasks may not or cannot be
/// read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TaskOffsets {
    tgid: u32,
    flags: u32,
    group_leader: u32,
    comm: u32,
}

impl TaskOffsets {
    /// Those of the running kernel, or why they are of no use.
    pub(super) fn find(types: &KernelTypes) -> Result<Self, String> {
        let of = |member| {
            types.offset("task_struct", member).ok_or_else(|| {
                format!("the kernel's type information (BTF) has no task_struct.{member}")
            })
        };
        let found = Self {
            tgid: of("tgid")?,
            flags: of("flags")?,
            group_leader: of("group_leader")?,
            comm: of("comm")?,
        };
        let supported =
            is_helper_supported(ProgramType::SockOps, BpfHelper::BPF_FUNC_get_current_task);
        match supported {
            Ok(false) => Err("this kernel does not let sock_ops programs see the task".to_owned()),
            // What cannot be told is tried.
            Ok(true) | Err(_) => Ok(found),
        }
    }

    /// Tells them to the kernel side.
    pub(super) fn set<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        loader
            .override_global("TASK_TGID_OFFSET", &self.tgid, true)
            .override_global("TASK_FLAGS_OFFSET", &self.flags, true)
            .override_global("TASK_LEADER_OFFSET", &self.group_leader, true)
            .override_global("TASK_COMM_OFFSET", &self.comm, true);
    }
}
