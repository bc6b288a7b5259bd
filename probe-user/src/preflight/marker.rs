//! Ties one target's connections to its slot in the kernel's histograms.

use crate::bpf::OwnProbes;
use crate::probe::Marker;
use crate::target::Role;

/// The kernel side, as one target's probe sees it.
pub(super) struct SlotMarker {
    pub(super) probes: OwnProbes,
    pub(super) slot: u32,
    pub(super) role: Role,
}

impl Marker for SlotMarker {
    fn mark(&self, cookie: u64) {
        if let Err(error) = self.probes.mark(cookie, self.slot, self.role) {
            log::error!("{error}; this connection will not be measured");
        }
    }

    fn end_pacing(&self, cookie: u64) {
        if let Err(error) = self.probes.end_pacing(cookie) {
            log::error!("{error}; the server's own time may show in the path RTT");
        }
    }

    fn forget(&self, cookie: u64) {
        self.probes.forget(cookie);
    }

    fn path_progress(&self) -> (u64, u32) {
        self.probes.path_progress(self.slot)
    }
}
