//! An array map of 64-bit cells, mapped into this process.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};

/// The cells of a `BPF_F_MMAPABLE` array of `u64`. The mapping keeps the map alive; unmapping lets it go.
#[derive(Debug)]
pub(super) struct MappedCells {
    base: NonNull<AtomicU64>,
    cells: usize,
    bytes: usize,
}

// SAFETY: the memory is shared with the kernel and reached through atomics only; nothing is tied to a thread.
unsafe impl Send for MappedCells {}
// SAFETY: as above.
unsafe impl Sync for MappedCells {}

impl MappedCells {
    /// Maps `cells` cells of the array map `fd`.
    pub(super) fn new(fd: BorrowedFd<'_>, cells: u32) -> io::Result<Self> {
        let cells = cells as usize;
        let bytes = (cells * size_of::<u64>()).next_multiple_of(rustix::param::page_size());
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory. The kernel refuses a
        // length beyond the map's.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast())
            .ok_or_else(|| io::Error::other("the kernel mapped a map at address 0"))?;
        Ok(Self { base, cells, bytes })
    }

    fn cells(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is at least `cells` cells long, page-aligned, and lives as long as `self`. The kernel
        // side writes whole aligned cells, as atomics do.
        unsafe { slice::from_raw_parts(self.base.as_ptr(), self.cells) }
    }

    /// The value of a cell; 0 beyond the end.
    pub(super) fn load(&self, cell: u32) -> u64 {
        self.cells()
            .get(cell as usize)
            .map_or(0, |cell| cell.load(Ordering::Acquire))
    }

    /// Sets a cell; nothing happens beyond the end.
    pub(super) fn store(&self, cell: u32, value: u64) {
        if let Some(cell) = self.cells().get(cell as usize) {
            cell.store(value, Ordering::Release);
        }
    }

    /// Copies `count` cells from `first` on, as far as they exist.
    pub(super) fn copy(&self, first: u32, count: u32) -> Vec<u64> {
        self.cells()
            .iter()
            .skip(first as usize)
            .take(count as usize)
            .map(|cell| cell.load(Ordering::Relaxed))
            .collect()
    }
}

impl Drop for MappedCells {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and no reference into it outlives the value.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
