//! The observer's own counters: the mapped `STATS` array, one cell each.

/// What a cell of `STATS` counts.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stat {
    /// Events that found the ring buffer full.
    EventsLost = 0,
    /// Events left out by the rate limit.
    EventsSuppressed = 1,
    /// Connections that got no slot of their own.
    SlotsExhausted = 2,
    /// Flows for which no socket storage could be had; their samples are missing.
    FlowsUntracked = 3,
    /// RTT callbacks whose two ways to the raw sample disagreed (another program wrote `reply`).
    RawDisagreements = 4,
    /// Connections seen on watched ports.
    FlowsSeen = 5,
    /// Not 0 once a raw RTT sample came with the callback itself.
    RawSeen = 6,
    /// Not 0 once a raw RTT sample was reconstructed.
    ReconstructedSeen = 7,
    /// Not 0 once the smoothed RTT had to stand in for a sample.
    SmoothedSeen = 8,
}

/// Cell that user space writes: the number of the running report interval, from 1. See `Measure::SegmentMin`.
pub const INTERVAL_CELL: u32 = 12;
/// Cell of the event rate limit: the second (`CLOCK_MONOTONIC`) that [`EVENT_COUNT_CELL`] is about.
pub const EVENT_SECOND_CELL: u32 = 13;
/// Cell of the event rate limit: events of that second.
pub const EVENT_COUNT_CELL: u32 = 14;

/// Cells in the `STATS` array.
pub const STATS: u32 = 16;
