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
}

/// Cells in the `STATS` array.
pub const STATS: u32 = 16;
