//! Who else is on the hook.

use std::io;
use std::os::fd::BorrowedFd;

use aya::programs::loaded_programs;

use super::syscall::attached_sock_ops;

/// `BPF_F_ALLOW_MULTI` (include/uapi/linux/bpf.h).
const ALLOW_MULTI: u32 = 2;

/// Ids and names of the programs on the cgroup's `sock_ops` hook, and whether they let no other attach.
///
/// # Errors
/// As for `attached_sock_ops`.
pub(super) fn on(cgroup: BorrowedFd<'_>) -> io::Result<(Vec<String>, bool)> {
    let attached = attached_sock_ops(cgroup)?;
    let exclusive = !attached.programs.is_empty() && attached.flags & ALLOW_MULTI == 0;
    Ok((describe(&attached.programs), exclusive))
}

/// Names the programs that hold the cgroup's `sock_ops` hook for themselves; `None` if it is free or shared.
pub(super) fn exclusive_owner(cgroup: BorrowedFd<'_>) -> Option<String> {
    let (programs, exclusive) = on(cgroup).ok()?;
    exclusive.then(|| programs.join(", "))
}

/// Ids and names, as `program 17 (cil_sock)`; without `CAP_SYS_ADMIN` the kernel keeps the names to itself.
fn describe(ids: &[u32]) -> Vec<String> {
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
        .collect()
}
