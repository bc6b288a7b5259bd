//! Marks joinprobe's own probe connections, so that their samples are told apart.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use aya::maps::{HashMap, MapData, MapError};
use probe_common::cells::{Counter, counter_cell};
use probe_common::endpoint::Role;
use probe_common::own::{OwnProbe, PACED, UNPACED};

use super::error::ReadError;
use super::mapped::MappedCells;

/// Handle for the connections that joinprobe makes itself; cheap to clone.
#[derive(Clone, Debug)]
pub struct OwnProbes {
    map: Arc<Mutex<HashMap<MapData, u64, OwnProbe>>>,
    cells: Arc<MappedCells>,
}

impl OwnProbes {
    pub(super) fn new(map: HashMap<MapData, u64, OwnProbe>, cells: Arc<MappedCells>) -> Self {
        Self {
            map: Arc::new(Mutex::new(map)),
            cells,
        }
    }

    /// Announces a connection by its socket's cookie, before `connect()`: everything it measures goes to `slot`, and
    /// its RTT samples are `path` until [`OwnProbes::end_pacing`].
    ///
    /// # Errors
    /// Too many connections (1024) are marked.
    pub fn mark(&self, cookie: u64, slot: u32, role: Role) -> Result<(), ReadError> {
        self.set(cookie, slot, role, PACED)
    }

    /// Counts the connection's RTT samples as `segment` from now on.
    ///
    /// # Errors
    /// The connection is not marked.
    pub fn end_pacing(&self, cookie: u64) -> Result<(), ReadError> {
        let own = self.lock().get(&cookie, 0).map_err(read_error)?;
        self.put(
            cookie,
            OwnProbe {
                phase: UNPACED,
                ..own
            },
        )
    }

    /// Takes the mark away; call it once the socket is closed. That it is not marked is no error.
    pub fn forget(&self, cookie: u64) {
        if let Err(error) = self.lock().remove(&cookie)
            && !matches!(error, MapError::KeyNotFound)
        {
            log::debug!("own probe {cookie:#x} was not marked any more: {error}");
        }
    }

    /// How many `path` samples the slot has taken since it was reset, and the newest one in microseconds.
    #[must_use]
    pub fn path_progress(&self, slot: u32) -> (u64, u32) {
        // The kernel writes the value before it counts.
        let count = self.cells.load(counter_cell(slot, Counter::PathSamples));
        let last = self.cells.load(counter_cell(slot, Counter::LastPathUs));
        (count, u32::try_from(last).unwrap_or(u32::MAX))
    }

    fn set(&self, cookie: u64, slot: u32, role: Role, phase: u32) -> Result<(), ReadError> {
        self.put(
            cookie,
            OwnProbe {
                slot,
                phase,
                role: role as u32,
            },
        )
    }

    fn put(&self, cookie: u64, own: OwnProbe) -> Result<(), ReadError> {
        self.lock().insert(cookie, own, 0).map_err(read_error)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<MapData, u64, OwnProbe>> {
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_error(error: MapError) -> ReadError {
    ReadError {
        what: "mark a probe connection",
        error: match error {
            MapError::SyscallError(error) => error.io_error,
            other => io::Error::other(other.to_string()),
        },
    }
}
