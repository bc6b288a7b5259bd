//! `cargo xtask simulate-verdicts`: what verdicts preflights come to at known true medians.

use std::process::ExitCode;

use anyhow::Result;

use crate::workspace::{cargo, finish};

/// Simulates preflights at known true medians and prints the table of docs/verdicts.md.
///
/// It feeds the code that judges real preflights; nothing is measured, so it needs no privileges.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Options of the simulation, such as `--preflights 2000` or `--rho 0.9`; `-- --help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    simulate(&args.options)?;
    Ok(ExitCode::SUCCESS)
}

/// Makes the whole table and fails when it misses what docs/verdicts.md promises.
pub(crate) fn check() -> Result<()> {
    simulate(&["--check".to_owned()])
}

fn simulate(options: &[String]) -> Result<()> {
    // A program of its own in a profile of its own: xtask would be slow to build with it, and it slow in debug code.
    finish(
        cargo("run")?
            .args(["--quiet", "--profile", "simulation"])
            .args(["--package", "probe-user", "--example", "simulate-verdicts"])
            .arg("--")
            .args(options),
    )
}
