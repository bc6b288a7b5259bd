//! The kernel side's debug lines on their way to the ordinary log.

use std::io;

use aya_log::EbpfLogger;

use super::wait;

/// Writes the kernel side's debug lines to the log as they come; see [`KernelLog::run`].
pub struct KernelLog {
    logger: EbpfLogger<&'static dyn log::Log>,
}

impl KernelLog {
    pub(super) fn new(ebpf: &mut aya::Ebpf) -> Result<Self, aya_log::Error> {
        Ok(Self {
            logger: EbpfLogger::init(ebpf)?,
        })
    }

    /// Forwards lines until it is dropped.
    ///
    /// # Errors
    /// The runtime cannot wait for the ring buffer.
    pub async fn run(self) -> io::Result<()> {
        let mut logger = wait::readable(self.logger)?;
        loop {
            let mut ready = logger.readable_mut().await?;
            ready.get_inner_mut().flush();
            ready.clear_ready();
        }
    }

    /// Forwards the lines that have come so far.
    pub fn flush(&mut self) {
        self.logger.flush();
    }
}
