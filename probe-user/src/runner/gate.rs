//! A preflight that the command has to pass first.

use std::ffi::OsStr;
use std::io;

use crate::config::PreflightConfig;
use crate::exit::Exit;
use crate::output::{Marks, Render as _, Table};
use crate::preflight::{self, PreflightError};

/// Runs the preflight and reports it on standard error; `Some` is the exit code when the command shall not start: after a
/// fail, and under `--strict` after a warning. What was not decided is no reason to stop.
pub(super) async fn refuses(
    config: &PreflightConfig,
    command: &OsStr,
) -> Result<Option<Exit>, PreflightError> {
    let outcome = preflight::run(config).await?;
    let table = Table {
        marks: Marks::of_locale(),
    };
    let mut out =
        anstream::AutoStream::new(io::stderr(), anstream::AutoStream::choice(&io::stderr()));
    if let Err(error) = table.write(&outcome.report, &mut out) {
        log::warn!("the preflight's report could not be written: {error}");
    }
    let command = command.display();
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
