//! The flat `CELLS` array: one region of [`STRIDE`] cells per slot, mapped into user space.
//!
//! A slot holds every measure of one endpoint: a histogram per [`Measure`], then one cell per [`Counter`].
//! Cell address = `slot * STRIDE + measure * BUCKETS + bucket`, or `slot * STRIDE + COUNTERS_AT + counter`.

use crate::bucket::BUCKETS;

/// What a histogram holds; values are microseconds. The words are those of docs/measurements.md and never merged.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    /// SYN to SYN-ACK RTT of connections whose SYN was sent once.
    Handshake = 0,
    /// `connect()` to ESTABLISHED, SYN retransmissions included.
    Connect = 1,
    /// RTT of joinprobe's own paced segments.
    Path = 2,
    /// The kernel's RTT samples of any other segment.
    Segment = 3,
    /// The smallest segment RTT of each connection within one report interval.
    SegmentMin = 4,
}

impl Measure {
    /// Every measure, in cell order.
    pub const ALL: [Self; 5] = [
        Self::Handshake,
        Self::Connect,
        Self::Path,
        Self::Segment,
        Self::SegmentMin,
    ];
}

/// What a counter cell counts.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// Connections whose opening was seen (client side: `connect()`; server side: the completed handshake).
    Opened = 0,
    /// Connections that reached ESTABLISHED.
    Established = 1,
    /// Connects answered by a RST (`ECONNREFUSED`).
    Refused = 2,
    /// Connects that ran out of SYN retries (`ETIMEDOUT`).
    TimedOut = 3,
    /// Connects ended by an ICMP error (`EHOSTUNREACH`, `ENETUNREACH`).
    Unreachable = 4,
    /// Connects given up by the caller: closed or killed before an answer.
    Abandoned = 5,
    /// Established connections that a RST of the peer ended, where the kernel side can tell.
    Reset = 6,
    /// Connects that failed for a reason this kernel does not tell.
    FailedUnknown = 7,
    /// SYNs sent again.
    SynRetransmits = 8,
    /// Segments sent again after ESTABLISHED.
    Retransmits = 9,
    /// Data segments sent, retransmissions included (`tcp_info.tcpi_data_segs_out`).
    SegmentsOut = 10,
    /// Established connections that were closed.
    Closed = 11,
    /// Path samples taken so far; with `LastPathUs` it lets user space read the samples in order.
    PathSamples = 12,
    /// The newest path sample in microseconds (a value, not a count).
    LastPathUs = 13,
    /// Connections counted here because no slot of their own was left.
    Overflowed = 14,
    /// RTT samples that are an acknowledged retransmission's (TCP timestamps, whole milliseconds).
    RetransmittedSamples = 15,
    /// RTT samples that could not be reconstructed: taken after the peer's FIN, or more connections than are kept
    /// (reconstruction only).
    DroppedSamples = 16,
    /// Connections that were there before the observer and are observed since; they count as nothing above but what
    /// they do from then on.
    Adopted = 17,
}

/// Cells kept for counters in each slot; a multiple of eight, so that a slot starts on a cache line.
pub const COUNTERS: u32 = 32;
/// Where a slot's counters begin.
pub const COUNTERS_AT: u32 = (Measure::SegmentMin as u32 + 1) * BUCKETS;
/// Cells per slot.
pub const STRIDE: u32 = COUNTERS_AT + COUNTERS;

/// The cell that counts `bucket` of `measure` in `slot`.
#[inline(always)]
#[must_use]
#[allow(
    clippy::inline_always,
    reason = "the BPF target has no calls to spare on the per-sample path"
)]
pub const fn bucket_cell(slot: u32, measure: Measure, bucket: u32) -> u32 {
    slot * STRIDE + measure as u32 * BUCKETS + bucket
}

/// The cell of `counter` in `slot`.
#[inline(always)]
#[must_use]
#[allow(
    clippy::inline_always,
    reason = "the BPF target has no calls to spare on the per-sample path"
)]
pub const fn counter_cell(slot: u32, counter: Counter) -> u32 {
    slot * STRIDE + COUNTERS_AT + counter as u32
}
