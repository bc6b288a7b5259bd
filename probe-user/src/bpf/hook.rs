//! Who else is on the hook.

use std::os::fd::BorrowedFd;

use aya::programs::loaded_programs;

use super::syscall::attached_sock_ops;

/// `BPF_F_ALLOW_MULTI` (include/uapi/linux/bpf.h).
const ALLOW_MULTI: u32 = 2;

/// Names the programs that hold the cgroup's `sock_ops` hook for themselves; `None` if it is free or shared.
pub(super) fn exclusive_owner(cgroup: BorrowedFd<'_>) -> Option<String> {
    let attached = attached_sock_ops(cgroup).ok()?;
    if attached.programs.is_empty() || attached.flags & ALLOW_MULTI != 0 {
        return None;
    }
    Some(describe(&attached.programs))
}

/// Ids and names, as `program 17 (cil_sock)`; without `CAP_SYS_ADMIN` the kernel keeps the names to itself.
fn describe(ids: &[u32]) -> String {
    let known: Vec<_> = loaded_programs().filter_map(Result::ok).collect();
    ids.iter()
        .map(|id| {
            let name = known
                .iter()
                .find(|program| program.id() == *id)
                .and_then(|program| program.name_as_str())
                .filter(|name| !name.is_empty());
            match name {
                Some(name) => format!("program {id} ({name})"),
                None => format!("program {id}"),
            }
        })
        .collect::<Vec<_>>()
        .join(", ")
}
