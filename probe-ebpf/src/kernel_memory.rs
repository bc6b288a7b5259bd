//! Reads of kernel structures whose layout the loader found out.

use aya_ebpf::helpers::bpf_probe_read_kernel;

/// Reads the field at `offset` of the structure at `structure`; `None` where nothing can be read.
#[inline(always)]
pub(crate) fn read<T>(structure: u64, offset: u32) -> Option<T> {
    let address = structure.wrapping_add(u64::from(offset)) as *const T;
    // SAFETY: the helper checks the address itself and answers with an error where nothing can be read; the offset is
    // that of a field of this size in the running kernel.
    unsafe { bpf_probe_read_kernel(address) }.ok()
}
