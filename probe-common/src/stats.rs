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
    /// Connections that were there before the observer and are observed.
    FlowsAdopted = 20,
    /// Connections that were there before the observer and that the kernel did not let it observe.
    AdoptionsRefused = 21,
}

/// Cell that user space writes: the number of the running report interval, from 1. See `Measure::SegmentMin`.
pub const INTERVAL_CELL: u32 = 12;
/// Cell of the event rate limit: the second (`CLOCK_MONOTONIC`) that [`EVENT_COUNT_CELL`] is about.
pub const EVENT_SECOND_CELL: u32 = 13;
/// Cell of the event rate limit: events of that second.
pub const EVENT_COUNT_CELL: u32 = 14;
/// Cell that user space writes before it opens an iterator over sockets: [`ADOPT`] or [`RELEASE`].
pub const ITERATION_CELL: u32 = 22;
/// Cell that user space writes before: the cookie of the namespace that is iterated over, or 0 while only one is watched.
pub const ITERATION_NETNS_CELL: u32 = 23;
/// Cell in which the iterator over programs counts those of type `sock_ops`.
pub const SOCK_OPS_PROGRAMS_CELL: u32 = 24;

/// Observe the connections that are there.
pub const ADOPT: u64 = 1;
/// Take back the callback flags that were set.
pub const RELEASE: u64 = 2;

/// Cell that user space sets to 1 once the kernel side's program on `tcp_probe` is attached: samples that do not come
/// with their callback are reconstructed from then on.
pub const TRACING_CELL: u32 = 16;
/// Cell that user space writes: the cookie of the socket on which it tries what callbacks carry.
pub const TRIAL_COOKIE_CELL: u32 = 17;
/// Cell with the trial's answer: 0 while no RTT callback came, [`WITH_SAMPLE`] or [`WITHOUT_SAMPLE`].
pub const TRIAL_ANSWER_CELL: u32 = 18;
/// The RTT callback carries the sample.
pub const WITH_SAMPLE: u64 = 1;
/// It does not.
pub const WITHOUT_SAMPLE: u64 = 2;

/// Cells in the `STATS` array.
pub const STATS: u32 = 32;
