//! Marks joinprobe's own probe connections.

use crate::no_padding;

/// Segments of this connection are paced: count their RTT as `path`.
pub const PACED: u32 = 1;
/// Pacing is over: count them as `segment`.
pub const UNPACED: u32 = 2;

/// Value of the `OWN` map, whose key is the socket's cookie (`SO_COOKIE`); set before `connect()`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnProbe {
    /// The slot that takes everything this connection measures.
    pub slot: u32,
    /// [`PACED`] or [`UNPACED`].
    pub phase: u32,
    /// The target's [`Role`](crate::endpoint::Role).
    pub role: u32,
}

no_padding!(OwnProbe, u32, u32, u32);
