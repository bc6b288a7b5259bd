//! What ends a watch.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::config::WatchConfig;

/// How often the file is looked for. Its folder may not exist yet, which inotify could not wait for.
const LOOK: Duration = Duration::from_millis(500);

/// Waits for the first of a signal, a deadline and a file.
pub(super) struct Ended {
    interrupt: Signal,
    terminate: Signal,
    deadline: Option<Instant>,
    file: Option<PathBuf>,
}

impl Ended {
    /// Signals count from now on.
    pub(super) fn new(config: &WatchConfig) -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            deadline: None,
            file: config.until_file.clone(),
        })
    }

    /// The time that was asked for begins now.
    pub(super) fn begin(&mut self, duration: Option<Duration>) {
        self.deadline = duration.and_then(|duration| Instant::now().checked_add(duration));
    }

    /// Resolves to the reason. Nothing is lost when the returned future is dropped.
    pub(super) async fn wait(&mut self) -> String {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT".to_owned(),
            _ = self.terminate.recv() => "SIGTERM".to_owned(),
            () = at(self.deadline) => "the time is over".to_owned(),
            path = appeared(self.file.as_deref()) => format!("{} is there", path.display()),
        }
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

async fn appeared(file: Option<&Path>) -> &Path {
    let Some(file) = file else {
        return std::future::pending().await;
    };
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if file.exists() {
            return file;
        }
    }
}
