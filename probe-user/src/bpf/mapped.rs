//! An array map of 64-bit cells, mapped into this process piece by piece.
//!
//! The kernel counts every page of a mapped map as this process's memory, touched or not. So a piece (one slot's cells)
//! is mapped when it is needed: for good where single cells are read again and again, else only while it is copied.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// One mapping of some cells.
#[derive(Debug)]
struct Piece {
    base: NonNull<AtomicU64>,
    bytes: usize,
    /// Cells before the first one that is meant: mappings begin at a page.
    skip: usize,
}

// SAFETY: the memory is shared with the kernel and reached through atomics only; nothing is tied to a thread.
unsafe impl Send for Piece {}
// SAFETY: as above.
unsafe impl Sync for Piece {}

impl Piece {
    /// Maps `count` cells of the array map `fd` from `first` on.
    fn map(fd: BorrowedFd<'_>, first: usize, count: usize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let start = first * size_of::<u64>();
        let begin = start - start % page;
        let bytes = (start + count * size_of::<u64>()).next_multiple_of(page) - begin;
        let offset = libc::off_t::try_from(begin).map_err(io::Error::other)?;
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory. The kernel refuses a
        // range beyond the map's.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                offset,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast())
            .ok_or_else(|| io::Error::other("the kernel mapped a map at address 0"))?;
        Ok(Self {
            base,
            bytes,
            skip: (start - begin) / size_of::<u64>(),
        })
    }

    fn cells(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is `bytes` long, page-aligned, and lives as long as `self`. The kernel side writes whole
        // aligned cells, as atomics do.
        let all =
            unsafe { slice::from_raw_parts(self.base.as_ptr(), self.bytes / size_of::<u64>()) };
        all.get(self.skip..).unwrap_or_default()
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and no reference into it outlives the value.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// The cells of a `BPF_F_MMAPABLE` array of `u64`, in pieces of one length.
#[derive(Debug)]
pub(super) struct MappedCells {
    fd: OwnedFd,
    /// Cells in a piece.
    length: u32,
    pieces: Box<[OnceLock<Piece>]>,
}

impl MappedCells {
    /// The array map `fd` of `pieces` times `length` cells. Nothing is mapped yet.
    pub(super) fn new(fd: BorrowedFd<'_>, pieces: u32, length: u32) -> io::Result<Self> {
        Ok(Self {
            fd: fd.try_clone_to_owned()?,
            length: length.max(1),
            pieces: (0..pieces).map(|_| OnceLock::new()).collect(),
        })
    }

    /// Maps a piece for good, if that was not done before: once this succeeded, its cells can be read.
    pub(super) fn ensure(&self, piece: u32) -> io::Result<()> {
        self.cells(piece).map(|_| ())
    }

    fn cells(&self, piece: u32) -> io::Result<&[AtomicU64]> {
        let kept = self.kept(piece)?;
        let mapped = if let Some(mapped) = kept.get() {
            mapped
        } else {
            let fresh = self.map(piece)?;
            // Whoever came second unmaps its own again.
            kept.get_or_init(|| fresh)
        };
        let cells = mapped.cells();
        Ok(cells.get(..self.length as usize).unwrap_or(cells))
    }

    fn cell(&self, cell: u32) -> Option<&AtomicU64> {
        let cells = self.cells(cell / self.length).ok()?;
        cells.get((cell % self.length) as usize)
    }

    /// The value of a cell; 0 beyond the end, or where [`MappedCells::ensure`] fails.
    pub(super) fn load(&self, cell: u32) -> u64 {
        self.cell(cell)
            .map_or(0, |cell| cell.load(Ordering::Acquire))
    }

    /// Sets a cell; nothing happens beyond the end.
    pub(super) fn store(&self, cell: u32, value: u64) {
        if let Some(cell) = self.cell(cell) {
            cell.store(value, Ordering::Release);
        }
    }

    /// Copies a whole piece. One that is not kept mapped is mapped for just as long as that takes.
    pub(super) fn copy(&self, piece: u32) -> io::Result<Vec<u64>> {
        if self.kept(piece)?.get().is_some() {
            return Ok(loaded(self.cells(piece)?));
        }
        let mapped = self.map(piece)?;
        let cells = mapped.cells();
        Ok(loaded(cells.get(..self.length as usize).unwrap_or(cells)))
    }

    fn kept(&self, piece: u32) -> io::Result<&OnceLock<Piece>> {
        self.pieces
            .get(piece as usize)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the map has no such piece"))
    }

    fn map(&self, piece: u32) -> io::Result<Piece> {
        let length = self.length as usize;
        Piece::map(self.fd.as_fd(), piece as usize * length, length)
    }
}

fn loaded(cells: &[AtomicU64]) -> Vec<u64> {
    cells
        .iter()
        .map(|cell| cell.load(Ordering::Relaxed))
        .collect()
}
