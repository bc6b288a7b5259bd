//! `joinprobe run -- CMD…`: a watch around a command.

mod command;
mod forward;
mod gate;
mod phase;
mod tee;

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Signal;
use rustix::thread::CapabilitySet;
use std::os::unix::process::ExitStatusExt as _;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use crate::cli::{ColorChoice, OutputFormat};
use crate::config::RunConfig;
use crate::exit::Exit;
use crate::preflight::PreflightError;
use crate::secrecy::Before;
use crate::watch::{Destination, Session, WatchError, outputs};
use command::Started;
use forward::Signals;

/// How long output may be silent after the command's end before whoever still holds it open is left behind.
const QUIET: Duration = Duration::from_millis(500);

/// Why a command was not run. Each is one sentence with the reason and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The observer or an output could not begin.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// The preflight before it came to no verdict.
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    /// The command cannot be started.
    #[error("cannot start `{command}`: {error}; check its path and that it may be executed")]
    Start {
        /// Its name.
        command: String,
        /// Why not.
        error: std::io::Error,
    },
    /// The report's file cannot be made.
    #[error("--report-file {}: cannot create it: {error}; name a file in a folder that can be written to", path.display())]
    ReportFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
}

impl RunError {
    /// The exit code.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Watch(error) => error.exit(),
            Self::Preflight(error) => error.exit(),
            Self::Start { .. } | Self::ReportFile { .. } => Exit::Usage,
        }
    }
}

/// Runs the command to its end. `core` is the limit on core dumps that it shall have.
///
/// # Errors
/// It was not started, or could not be waited for.
pub async fn run(
    config: &RunConfig,
    color: ColorChoice,
    core: Option<&Before>,
) -> Result<Exit, RunError> {
    let mut destination = match &config.report_file {
        None => Destination::StandardError,
        Some(path) => {
            Destination::File(File::create(path).map_err(|error| RunError::ReportFile {
                path: path.clone(),
                error,
            })?)
        }
    };
    if let Some(preflight) = &config.preflight
        && let Some(exit) = gate::refuses(preflight, config, &mut destination).await?
    {
        return Ok(exit);
    }
    let exporters = outputs::open(&config.observe, destination, color)?;
    let mut signals = Signals::new().map_err(|error| WatchError::Wait {
        what: "signals",
        error,
    })?;
    let mut session = Session::attach(&config.observe, exporters)?;
    // Whoever reads the reports may go; the command goes on.
    let _ = session.start();
    let started = command::start(config, core).map_err(|error| RunError::Start {
        command: config.program().to_string_lossy().into_owned(),
        error,
    })?;
    // The command may run as another user, and signals still have to reach it.
    session.drop_capabilities(CapabilitySet::KILL);
    let lines = Lines {
        traffic: started.traffic.clone(),
        shared: config.report_file.is_none(),
    };
    let status = observe(config, &mut session, &mut signals, started, &lines).await?;
    lines.end();
    let verdict = session.finish().verdict;
    Ok(match code(status) {
        0 => Exit::of(verdict, config.observe.decision.leniency),
        failed => Exit::Command(failed),
    })
}

/// The lines of standard error, which the command and the reports share.
struct Lines {
    traffic: tee::Traffic,
    /// The reports go there too.
    shared: bool,
}

impl Lines {
    /// Ends the one that the command has begun.
    fn end(&self) {
        if self.shared {
            self.traffic.end_line();
        }
    }
}

async fn observe(
    config: &RunConfig,
    session: &mut Session<'_>,
    signals: &mut Signals,
    mut started: Started,
    lines: &Lines,
) -> Result<ExitStatus, WatchError> {
    let interval = config.observe.interval;
    let mut ticks = interval_at(Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut announcing = true;
    loop {
        // Whoever reads the reports may go; the command goes on.
        let _ = tokio::select! {
            biased;
            phase = started.phases.recv(), if announcing => {
                match phase {
                    Some(phase) => session.enter_phase(phase),
                    None => announcing = false,
                }
                continue;
            }
            () = std::future::ready(()), if session.is_behind() => {
                lines.end();
                session.report_oldest()
            }
            status = started.child.wait() => {
                let status = status.map_err(|error| WatchError::Wait { what: "the command", error })?;
                remaining(&mut started.phases, &started.traffic, session).await;
                return Ok(status);
            }
            signal = signals.next() => {
                if signal == Signal::WINCH {
                    // Before the command hears of it: it asks for the size then.
                    started.resize();
                }
                signals.pass_on(signal, started.child.id());
                continue;
            }
            event = session.next_event() => {
                // Only there an event is a line.
                if config.observe.output == OutputFormat::Json {
                    lines.end();
                }
                session.event(&event)
            }
            _ = ticks.tick() => {
                lines.end();
                session.report()
            }
        };
    }
}

/// Lets the rest of the output through.
async fn remaining(
    phases: &mut UnboundedReceiver<String>,
    traffic: &tee::Traffic,
    session: &mut Session<'_>,
) {
    let mut seen = traffic.bytes();
    loop {
        match timeout(QUIET, phases.recv()).await {
            Ok(Some(phase)) => {
                session.enter_phase(phase);
            }
            // Both streams have ended.
            Ok(None) => return,
            Err(_) => {
                let now = traffic.bytes();
                if now == seen && !traffic.is_writing() {
                    log::info!(
                        "the command has ended, but something it started still holds its output"
                    );
                    return;
                }
                seen = now;
            }
        }
    }
}

/// The command's exit code, or 128 and the signal that ended it, as shells say.
fn code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(255)
}
