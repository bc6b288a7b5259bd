//! The limit on open files: maps, programs and connections are files each, and a runtime without one of its own panics.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Maps, programs, links, the runtime's own and a connection for each of a few targets.
const LEAST: u64 = 128;

/// This process may open too few files.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "only {allowed} files may be open at once, and joinprobe needs {LEAST}: raise the limit (`ulimit -n {LEAST}`, \
     LimitNOFILE= in a systemd unit)"
)]
pub struct TooFew {
    /// The hard limit (`RLIMIT_NOFILE`).
    pub allowed: u64,
}

/// Raises a soft limit that is too low as far as needed.
///
/// # Errors
/// The hard limit is too low as well, and this process may not raise it.
pub fn ensure() -> Result<(), TooFew> {
    let limit = getrlimit(Resource::Nofile);
    // `None` is no limit at all.
    let Some(allowed) = limit.current.filter(|current| *current < LEAST) else {
        return Ok(());
    };
    let maximum = limit.maximum.map(|maximum| maximum.max(LEAST));
    let raised = Rlimit {
        current: Some(LEAST),
        maximum,
    };
    setrlimit(Resource::Nofile, raised).map_err(|_| TooFew { allowed })
}
