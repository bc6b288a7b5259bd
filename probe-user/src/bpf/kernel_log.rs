//! The kernel side's debug lines on their way to the ordinary log.

use std::io;

use aya_log::EbpfLogger;
use tokio::io::unix::AsyncFd;

use super::error::AttachError;
use super::wait;

/// The kernel side's logger: it writes what the kernel sends to the log of this process.
pub(super) type Logger = EbpfLogger<&'static dyn log::Log>;

/// Makes the logger of a loaded object.
pub(super) fn logger(ebpf: &mut aya::Ebpf) -> Result<Logger, AttachError> {
    EbpfLogger::init(ebpf).map_err(|error| AttachError::Object(error.to_string()))
}

/// Writes the kernel side's debug lines to the log as they come; see [`KernelLog::forward`].
pub struct KernelLog {
    logger: AsyncFd<Logger>,
}

impl KernelLog {
    /// Must be called inside the runtime.
    pub(super) fn new(logger: Logger) -> io::Result<Self> {
        Ok(Self {
            logger: wait::readable(logger)?,
        })
    }

    /// Forwards lines until it is dropped. No line is lost by that: the next call, or [`KernelLog::flush`], goes on.
    ///
    /// # Errors
    /// The runtime cannot wait for the ring buffer.
    pub async fn forward(&mut self) -> io::Result<()> {
        loop {
            let mut ready = self.logger.readable_mut().await?;
            ready.clear_ready();
            // What comes during the flush makes the descriptor readable anew.
            ready.get_inner_mut().flush();
        }
    }

    /// Forwards the lines that have come so far.
    pub fn flush(&mut self) {
        self.logger.get_mut().flush();
    }
}
