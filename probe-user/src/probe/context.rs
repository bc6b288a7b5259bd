//! What a probe is given.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::Instant;

use crate::tls::ClientTls;

/// Tells the kernel side which connection is our own, and reads back what it measured there. One per target.
pub trait Marker {
    /// Before `connect()`: everything the socket with this `SO_COOKIE` measures belongs to the target, and its segment
    /// RTTs are `path`.
    fn mark(&self, cookie: u64);
    /// The paced part is over: further segment RTTs of this socket are `segment`.
    fn end_pacing(&self, cookie: u64);
    /// The socket is closed.
    fn forget(&self, cookie: u64);
    /// How many `path` samples the target has so far, and the newest in microseconds.
    fn path_progress(&self) -> (u64, u32);
}

/// Measures nothing: for a probe without the kernel side.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMarker;

impl Marker for NoMarker {
    fn mark(&self, _cookie: u64) {}
    fn end_pacing(&self, _cookie: u64) {}
    fn forget(&self, _cookie: u64) {}
    fn path_progress(&self) -> (u64, u32) {
        (0, 0)
    }
}

/// The permission to send the etcd read. One for a whole run, however many members are probed: etcd must not notice us.
#[derive(Debug)]
pub struct EtcdRead {
    each: bool,
    taken: Cell<bool>,
}

impl EtcdRead {
    /// The first member that is ready to answer takes it.
    #[must_use]
    pub fn once() -> Self {
        Self {
            each: false,
            taken: Cell::new(false),
        }
    }

    /// Nobody is asked: the read was answered before.
    #[must_use]
    pub fn none() -> Self {
        Self {
            each: false,
            taken: Cell::new(true),
        }
    }

    /// Every member is asked (`--probe-each-member`).
    #[must_use]
    pub fn each_member() -> Self {
        Self {
            each: true,
            taken: Cell::new(false),
        }
    }

    /// Whether the caller may send it; at most one `true` unless every member is asked.
    pub(super) fn take(&self) -> bool {
        !self.taken.replace(true) || self.each
    }
}

/// Says whether the samples so far, in microseconds, decide.
pub type Enough<'a> = dyn Fn(&[u32]) -> bool + 'a;

/// How the ClientHello is written.
#[derive(Clone, Copy)]
pub struct Pacing<'a> {
    /// Most chunks, 1 to [`Pacing::MAX_CHUNKS`]; 1 sends it in one piece (`--no-pacing`).
    pub max_chunks: u32,
    /// Asked after each chunk from [`Pacing::MIN_CHUNKS`] on, with the samples of this connection so far in
    /// microseconds: `true` sends the rest at once.
    pub enough: Option<&'a Enough<'a>>,
}

impl Pacing<'_> {
    /// Linux acknowledges the first 16 segments of a connection at once (`TCP_MAX_QUICKACKS`) and delays the next.
    pub const MAX_CHUNKS: u32 = 16;
    /// Five samples, the least a median can be decided on, and the last chunk, which is no sample.
    pub const MIN_CHUNKS: u32 = 6;
    /// Least time between two chunks. A chunk sent earlier yields no sample.
    pub const INTERVAL: Duration = Duration::from_millis(20);

    /// In one piece.
    #[must_use]
    pub fn off() -> Self {
        Self {
            max_chunks: 1,
            enough: None,
        }
    }
}

impl Default for Pacing<'_> {
    fn default() -> Self {
        Self {
            max_chunks: Self::MAX_CHUNKS,
            enough: None,
        }
    }
}

/// How far a probe goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// Everything the role asks for.
    #[default]
    Full,
    /// TLS, but no request: a further connection for more `path` samples.
    PathOnly,
}

/// Everything a probe needs besides its target.
pub struct ProbeContext<'a> {
    /// The kernel side.
    pub marker: &'a dyn Marker,
    /// Whom to trust and what to show.
    pub tls: &'a ClientTls,
    /// The run's one etcd read.
    pub etcd_read: &'a EtcdRead,
    /// How the ClientHello is written.
    pub pacing: Pacing<'a>,
    /// How far to go.
    pub extent: Extent,
    /// How long the name took to resolve, for the report; `None` for an address literal.
    pub dns: Option<Duration>,
    /// The probe has returned by then, whatever the server does.
    pub deadline: Instant,
}
