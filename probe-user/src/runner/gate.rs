//! A preflight that the command has to pass first.

use std::io;

use crate::config::PreflightConfig;
use crate::exit::Exit;
use crate::output::{Marks, Render as _, Table};
use crate::preflight::{self, PreflightError};

/// Runs the preflight and reports it on standard error; `Some` is the exit code when the command shall not start.
pub(super) async fn refuses(config: &PreflightConfig) -> Result<Option<Exit>, PreflightError> {
    let outcome = preflight::run(config).await?;
    let table = Table {
        marks: Marks::of_locale(),
    };
    let mut out =
        anstream::AutoStream::new(io::stderr(), anstream::AutoStream::choice(&io::stderr()));
    if let Err(error) = table.write(&outcome.report, &mut out) {
        log::warn!("the preflight's report could not be written: {error}");
    }
    Ok((outcome.exit != Exit::Pass).then_some(outcome.exit))
}
