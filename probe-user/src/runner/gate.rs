//! A preflight that the command has to pass first.

use std::io;

use anstream::{AutoStream, StripStream};

use crate::config::{PreflightConfig, RunConfig};
use crate::exit::Exit;
use crate::preflight::{self, PreflightError};
use crate::watch::Destination;

/// Runs the preflight and reports it where the reports go, in their format; `Some` is the exit code when the command shall
/// not start: after a fail, and under `--strict` after a warning. What was not decided is no reason to stop.
pub(super) async fn refuses(
    preflight: &PreflightConfig,
    run: &RunConfig,
    destination: &mut Destination,
) -> Result<Option<Exit>, PreflightError> {
    let outcome = preflight::run(preflight).await?;
    let render = run.observe.output.render(preflight.leniency());
    let written = match destination {
        Destination::File(file) => render.write(&outcome.report, &mut StripStream::new(file)),
        Destination::StandardError | Destination::StandardOutput => {
            let choice = AutoStream::choice(&io::stderr());
            render.write(&outcome.report, &mut AutoStream::new(io::stderr(), choice))
        }
    };
    if let Err(error) = written {
        log::warn!("the preflight's report could not be written: {error}");
    }
    let command = run.program().display();
    Ok(match outcome.exit {
        Exit::Pass => None,
        Exit::Inconclusive => {
            log::warn!("the preflight was not decided; {command} is started all the same");
            None
        }
        exit => {
            let code = exit.code();
            log::error!(
                "{command} was not started: the preflight before it ended with exit code {code}; mend what it names, or \
                 leave out --preflight to start regardless"
            );
            Some(exit)
        }
    })
}
