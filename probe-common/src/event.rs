//! Rare events: a connection opened, failed or closed. Samples never travel this way.

use crate::no_padding;

/// What happened.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A connection was established.
    Opened = 1,
    /// A connect failed.
    Failed = 2,
    /// An established connection ended.
    Closed = 3,
    /// A connection ended that was there before the observer and was adopted.
    AdoptedClosed = 4,
}

/// A record of the `EVENTS` ring buffer.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in nanoseconds of `CLOCK_MONOTONIC` (`bpf_ktime_get_ns`).
    pub time_ns: u64,
    /// Opened, failed: since `connect()`. Closed: since ESTABLISHED, or since it was adopted. Microseconds.
    pub waited_us: u64,
    /// Cookie of the network namespace, or 0 where the kernel does not tell.
    pub netns: u64,
    /// The remote address in network byte order; IPv4 as `::ffff:a.b.c.d`.
    pub remote: [u8; 16],
    /// The process's name at `connect()`, zero-terminated; all zero where unknown.
    pub comm: [u8; 16],
    /// The process's id (tgid) at `connect()`; 0 where unknown.
    pub pid: u32,
    /// SYNs sent again.
    pub syn_retransmits: u32,
    /// Remote port, host byte order.
    pub remote_port: u16,
    /// Local port, host byte order.
    pub local_port: u16,
    /// A [`EventKind`].
    pub kind: u8,
    /// A [`Role`](crate::endpoint::Role).
    pub role: u8,
    /// A [`Side`](crate::endpoint::Side).
    pub side: u8,
    /// The outcome as its [`Counter`](crate::cells::Counter) (`Established`, `Refused`, ...).
    pub outcome: u8,
}

no_padding!(Event, [u64; 3], [u8; 32], [u32; 2], [u16; 2], [u8; 4]);
