//! `joinprobe watch`: stays attached, reports every interval, ends with a verdict.

mod clock;
mod judge;
mod ledger;
mod notify;
pub(crate) mod outputs;
mod phases;
pub(crate) mod privilege;
mod processes;
mod session;
mod timing;
mod until;

use rustix::thread::CapabilitySet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::bpf::AttachError;
use crate::cli::ColorChoice;
use crate::config::WatchConfig;
use crate::exit::Exit;
use crate::output::Flow;

pub use outputs::Destination;
pub use session::{Finished, Session};

/// Why a watch could not begin. Each is one sentence with the reason and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The kernel side could not be attached.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// An output cannot be.
    #[error(transparent)]
    Textfile(#[from] crate::output::BadPath),
    /// Signals or events cannot be waited for.
    #[error("cannot wait for {what}: {error}; too many open files or too little memory")]
    Wait {
        /// What would have been waited for.
        what: &'static str,
        /// Why not.
        error: std::io::Error,
    },
}

impl WatchError {
    /// The exit code.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Textfile(_) => Exit::Usage,
            Self::Attach(_) | Self::Wait { .. } => Exit::CouldNotMeasure,
        }
    }
}

/// Runs a watch to its end.
///
/// # Errors
/// It could not begin. What goes wrong later is logged and does not stop the measuring.
pub async fn run(config: &WatchConfig, color: ColorChoice) -> Result<Exit, WatchError> {
    let exporters = outputs::open(&config.observe, Destination::StandardOutput, color)?;
    let mut ended = until::Ended::new(config).map_err(|error| WatchError::Wait {
        what: "signals",
        error,
    })?;
    let mut session = Session::attach(&config.observe, exporters)?;
    let mut flow = session.start();
    session.drop_capabilities(CapabilitySet::empty());
    if let Some(path) = config.until_file.as_ref().filter(|path| path.exists()) {
        log::warn!(
            "--until-file {} is there already, so the watch ends at once; remove it first to watch until it appears",
            path.display()
        );
    }
    ended.begin(config.duration);
    notify::ready();
    let mut ticks = interval_at(
        Instant::now() + config.observe.interval,
        config.observe.interval,
    );
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while flow == Flow::Continue {
        flow = tokio::select! {
            reason = ended.wait() => {
                log::info!("ending: {reason}");
                break;
            }
            event = session.next_event() => session.event(&event),
            _ = ticks.tick() => session.report(),
        };
    }
    notify::stopping();
    let finished = session.finish();
    Ok(if config.fail_on_verdict {
        Exit::of(finished.verdict, config.observe.decision.leniency)
    } else {
        Exit::Pass
    })
}
