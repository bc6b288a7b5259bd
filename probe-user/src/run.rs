//! From raw arguments to an exit code.

use std::io::{self, Write as _};

use anstream::AutoStream;
use clap::{CommandFactory as _, FromArgMatches as _};

use crate::cli::{Args, ColorChoice, Command, OutputFormat};
use crate::config::sources::{self, Origins, SourceError};
use crate::config::{Common, PreflightConfig, RunConfig, WatchConfig};
use crate::exit::Exit;
use crate::output::{Json, Marks, Render, Table};
use crate::{preflight, report, runner, secrecy, watch};

/// Runs the command that the process's arguments name.
#[must_use]
pub fn run() -> Exit {
    // Before anything secret is read. Where it is refused, what follows is as safe as any other program.
    let protected = secrecy::protect();
    let (args, origins) = match arguments() {
        Ok(args) => args,
        Err(SourceError::CommandLine(error)) => {
            // Help and version come this way too, with code 0. A closed pipe is no reason to complain.
            let _ = error.print();
            return if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Pass
            };
        }
        Err(error) => return complain(&error, Exit::Usage),
    };
    crate::cli::log::start(args.global.verbose, args.global.bpf_log);
    if let Err(error) = &protected {
        log::warn!("core dumps of this process could not be forbidden: {error}");
    }
    let color = args.global.color;
    let common = Common::resolve(&args.global);
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return complain(&format!("cannot start: {error}"), Exit::CouldNotMeasure),
    };
    match args.command {
        Command::Report(args) => {
            let result = report::run(&args.into(), Marks::of_locale(), &mut io::stdout().lock());
            match result {
                Ok(()) => Exit::Pass,
                Err(error) if error.exit() == Exit::Pass => Exit::Pass,
                Err(error) => complain(&error, error.exit()),
            }
        }
        Command::Watch(args) => {
            let config = match WatchConfig::resolve(common, *args, &origins) {
                Ok(config) => config,
                Err(error) => return complain(&error, Exit::Usage),
            };
            match runtime.block_on(watch::run(&config, color)) {
                Ok(exit) => exit,
                Err(error) => complain(&error, error.exit()),
            }
        }
        Command::Run(args) => {
            let config = match RunConfig::resolve(common, *args, &origins) {
                Ok(config) => config,
                Err(error) => return complain(&error, Exit::Usage),
            };
            match runtime.block_on(runner::run(&config, color, protected.as_ref().ok())) {
                Ok(exit) => exit,
                Err(error) => complain(&error, error.exit()),
            }
        }
        Command::Preflight(args) => {
            let config = match PreflightConfig::resolve(common, *args, &origins) {
                Ok(config) => config,
                Err(error) => return complain(&error, Exit::Usage),
            };
            match runtime.block_on(preflight::run(&config)) {
                Ok(outcome) => print(&outcome, &config, color),
                Err(error) => complain(&error, error.exit()),
            }
        }
    }
}

/// The arguments as typed, completed from the environment and the configuration file.
fn arguments() -> Result<(Args, Origins), SourceError> {
    let typed = std::env::args_os().collect();
    let completed = sources::complete(&mut Args::command(), typed, |name| std::env::var_os(name))?;
    let args = Args::from_arg_matches(&completed.matches)?;
    Ok((args, completed.origins))
}

fn print(outcome: &preflight::Outcome, config: &PreflightConfig, color: ColorChoice) -> Exit {
    let choice = match color {
        ColorChoice::Auto => AutoStream::choice(&io::stdout()),
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
    };
    let mut out = AutoStream::new(io::stdout(), choice);
    let format: &dyn Render = match config.output {
        OutputFormat::Table => &Table {
            marks: Marks::of_locale(),
        },
        OutputFormat::Json => &Json,
    };
    match format.write(&outcome.report, &mut out) {
        // Whoever closed the pipe has read enough; the exit code still tells.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => outcome.exit,
        Err(error) => complain(
            &format!(
                "cannot write the result to standard output: {error}; free the disk or redirect it elsewhere"
            ),
            Exit::CouldNotMeasure,
        ),
        Ok(()) => outcome.exit,
    }
}

fn complain(error: &dyn std::fmt::Display, exit: Exit) -> Exit {
    // With standard error closed there is nobody left to tell.
    let _ = writeln!(io::stderr(), "joinprobe: {error}");
    exit
}
