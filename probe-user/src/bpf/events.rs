//! Events from the kernel: connections that were opened, failed or closed.

use std::io;

use aya::maps::{MapData, RingBuf};
use probe_common::event::Event;
use tokio::io::unix::AsyncFd;

use super::wait;

/// The stream of events. Events that nobody reads in time are counted as lost, never waited for.
pub struct EventStream {
    ring: AsyncFd<RingBuf<MapData>>,
}

impl EventStream {
    /// Must be called inside the runtime.
    pub(super) fn new(ring: RingBuf<MapData>) -> io::Result<Self> {
        Ok(Self {
            ring: wait::readable(ring)?,
        })
    }

    /// Waits for the next event. Nothing is lost when the returned future is dropped.
    ///
    /// # Errors
    /// The runtime cannot wait for the ring buffer.
    pub async fn next(&mut self) -> io::Result<Event> {
        loop {
            if let Some(event) = self.try_next() {
                return Ok(event);
            }
            let mut ready = self.ring.readable_mut().await?;
            ready.clear_ready();
            // What came between the look above and the wait makes the descriptor readable anew.
        }
    }

    /// The next event, if there is one already.
    pub fn try_next(&mut self) -> Option<Event> {
        let item = self.ring.get_mut().next()?;
        parse(&item)
    }
}

/// Reads an event out of its record; `None` for a record of another size.
fn parse(record: &[u8]) -> Option<Event> {
    if record.len() != size_of::<Event>() {
        return None;
    }
    // SAFETY: the record has the type's size, and any bytes are a valid `Event`: it is made of integers.
    Some(unsafe { record.as_ptr().cast::<Event>().read_unaligned() })
}
