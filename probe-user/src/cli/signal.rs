//! Signals that end a run cleanly.

use tokio::signal::unix::{SignalKind, signal};

/// A signal that asked us to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// Its number.
    pub number: i32,
    /// Its name.
    pub name: &'static str,
}

/// Resolves when SIGINT or SIGTERM arrives.
///
/// # Errors
/// The handler could not be installed.
pub async fn interrupted() -> std::io::Result<Interrupted> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(tokio::select! {
        _ = interrupt.recv() => Interrupted { number: 2, name: "SIGINT" },
        _ = terminate.recv() => Interrupted { number: 15, name: "SIGTERM" },
    })
}
