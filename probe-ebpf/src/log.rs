//! Debug lines for `--bpf-log`. Functions of their own, so that their stack use is not the main program's; the level is
//! read-only data, so the verifier removes their bodies when it is off.

use aya_log_ebpf::debug;

/// A connection was established.
#[inline(never)]
pub(crate) fn opened(slot: u32, connect_us: u32, syn_retransmits: u32) {
    debug!(
        (),
        "opened: slot {}, connect {} us, {} SYNs sent again", slot, connect_us, syn_retransmits
    );
}

/// A connect failed.
#[inline(never)]
pub(crate) fn failed(slot: u32, outcome: u32, syn_retransmits: u32) {
    debug!(
        (),
        "failed: slot {}, outcome {}, {} SYNs sent again", slot, outcome, syn_retransmits
    );
}

/// An established connection ended.
#[inline(never)]
pub(crate) fn closed(slot: u32, outcome: u32) {
    debug!((), "closed: slot {}, outcome {}", slot, outcome);
}
