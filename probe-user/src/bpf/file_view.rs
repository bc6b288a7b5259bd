//! The contents of a file that does not change while it is looked at.

use std::fs::{self, File};
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::slice;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A file's bytes: mapped where the file system can, as sysfs does since 6.16, else a copy.
#[derive(Debug)]
pub(super) enum FileView {
    Mapped { base: NonNull<u8>, length: usize },
    Copied(Vec<u8>),
}

impl FileView {
    /// Those of one of the kernel's own files, which nobody can write.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        match Self::map(path) {
            Some(mapped) => Ok(mapped),
            None => Ok(Self::Copied(fs::read(path)?)),
        }
    }

    fn map(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let length = usize::try_from(file.metadata().ok()?.len()).ok()?;
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let base = unsafe {
            mmap(
                ptr::null_mut(),
                length,
                ProtFlags::READ,
                MapFlags::PRIVATE,
                &file,
                0,
            )
        };
        Some(Self::Mapped {
            base: NonNull::new(base.ok()?.cast())?,
            length,
        })
    }
}

impl Deref for FileView {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            // SAFETY: the mapping is `length` long and lives as long as `self`; the kernel never writes such a file anew.
            Self::Mapped { base, length } => unsafe {
                slice::from_raw_parts(base.as_ptr(), *length)
            },
            Self::Copied(bytes) => bytes,
        }
    }
}

impl Drop for FileView {
    fn drop(&mut self) {
        if let Self::Mapped { base, length } = self {
            // SAFETY: the mapping is this value's own, and no slice of it outlives the value.
            let _ = unsafe { munmap(base.as_ptr().cast(), *length) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_is_what_reading_gives() {
        let path = Path::new("/sys/kernel/btf/vmlinux");
        // Kernels without type information exist.
        if let Ok(read) = fs::read(path) {
            assert!(*FileView::of(path).unwrap() == *read);
        }
        assert!(FileView::of(Path::new("/sys/kernel/btf/none")).is_err());
    }
}
