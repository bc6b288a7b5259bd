//! `--listen ADDR:PORT`: the scrape endpoint.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use tokio::task::JoinHandle;

use super::format::Format;
use super::serve;
use super::snapshot::Snapshot;
use crate::output::{ExportError, Exporter, IntervalReport, Report};

/// Serves `/metrics` and `/healthz` from the tokio runtime it is started in.
///
/// Values are those of the last interval report. While the port is taken, every report tries again.
#[derive(Debug)]
pub struct Listen {
    address: SocketAddr,
    pub(super) shared: Arc<Shared>,
    server: Option<(SocketAddr, JoinHandle<()>)>,
}

/// What the server's tasks read.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// How long a report may be overdue before `/healthz` complains.
    patience: Duration,
}

#[derive(Debug)]
struct State {
    snapshot: Arc<Snapshot>,
    /// The snapshot in each format, once somebody has asked for it: scrapers share one copy.
    encoded: [Option<Bytes>; Format::ALL.len()],
    updated: Instant,
}

impl Listen {
    /// An endpoint at `address` for a run that reports every `interval`.
    #[must_use]
    pub fn new(address: SocketAddr, interval: Duration) -> Self {
        Self {
            address,
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    snapshot: Arc::default(),
                    encoded: [const { None }; Format::ALL.len()],
                    updated: Instant::now(),
                }),
                // One report may be late, for instance behind a slow disk.
                patience: interval * 2 + Duration::from_secs(5),
            }),
            server: None,
        }
    }

    /// The address listened on, once it is; tells the port where port 0 was asked for.
    #[must_use]
    pub fn bound(&self) -> Option<SocketAddr> {
        self.server.as_ref().map(|(address, _)| *address)
    }

    fn publish(&mut self, make: impl FnOnce(&Snapshot) -> Snapshot) -> Result<(), ExportError> {
        self.shared.replace(make);
        self.serve()
    }

    fn serve(&mut self) -> Result<(), ExportError> {
        if self.server.is_some() {
            return Ok(());
        }
        let listener = TcpListener::bind(self.address).map_err(ExportError::io("listen"))?;
        let bound = listener.local_addr().map_err(ExportError::io("listen"))?;
        listener
            .set_nonblocking(true)
            .map_err(ExportError::io("listen"))?;
        let listener =
            tokio::net::TcpListener::from_std(listener).map_err(ExportError::io("listen"))?;
        let task = tokio::spawn(serve::accept(listener, Arc::clone(&self.shared)));
        log::info!("metrics at http://{bound}/metrics");
        self.server = Some((bound, task));
        Ok(())
    }
}

impl Drop for Listen {
    fn drop(&mut self) {
        if let Some((_, task)) = &self.server {
            task.abort();
        }
    }
}

impl Shared {
    /// The metrics in `format`.
    ///
    /// # Errors
    /// The encoder refuses.
    pub(super) fn encoded(&self, format: Format) -> Result<Bytes, String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = &state.encoded[format as usize] {
            return Ok(bytes.clone());
        }
        // Kept until the next report, so without the room the encoder left at the end.
        let bytes = Bytes::from(format.encode(&state.snapshot)?.into_boxed_slice());
        state.encoded[format as usize] = Some(bytes.clone());
        Ok(bytes)
    }

    /// How long the newest report is overdue; `None` while it is not.
    pub(super) fn overdue(&self) -> Option<Duration> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state
            .updated
            .elapsed()
            .checked_sub(self.patience)
            .map(|late| late + self.patience)
    }

    /// Makes the newest report older than it is.
    #[cfg(test)]
    pub(super) fn age(&self, by: Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.updated = state.updated.checked_sub(by).unwrap();
    }

    fn replace(&self, make: impl FnOnce(&Snapshot) -> Snapshot) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State {
            snapshot: Arc::new(make(&state.snapshot)),
            encoded: [const { None }; Format::ALL.len()],
            updated: Instant::now(),
        };
    }
}

impl Exporter for Listen {
    fn name(&self) -> String {
        format!("--listen {}", self.address)
    }

    fn start(&mut self) -> Result<(), ExportError> {
        self.serve()
    }

    fn interval(&mut self, report: &IntervalReport) -> Result<(), ExportError> {
        self.publish(|before| Snapshot::of_interval(report, before))
    }

    fn verdict(&mut self, report: &Report) -> Result<(), ExportError> {
        self.publish(|before| Snapshot::of_run(report, before))
    }
}
