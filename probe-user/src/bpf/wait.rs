//! Waiting for a ring buffer inside the runtime.

use std::io;
use std::os::fd::AsRawFd;

use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;

/// Registers a ring buffer with the running runtime.
///
/// # Errors
/// There is no runtime, or it cannot wait for this descriptor.
pub(super) fn readable<T: RingBuffer>(ring: T) -> io::Result<AsyncFd<T>> {
    // Registering outside a runtime would panic.
    Handle::try_current().map_err(io::Error::other)?;
    // SAFETY: a `RingBuffer` owns the descriptor it names, and keeps it open as long as it lives.
    unsafe { AsyncFd::register(ring) }.map_err(Into::into)
}

/// Something that owns one descriptor, always the same, for all its life.
pub(super) trait RingBuffer: AsRawFd {}

impl RingBuffer for aya::maps::RingBuf<aya::maps::MapData> {}

impl<L> RingBuffer for aya_log::EbpfLogger<L> {}
