//! From raw arguments to an exit code.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::SystemTime;

use anstream::AutoStream;
use clap::{CommandFactory as _, FromArgMatches as _};

use crate::cli::{Args, ColorChoice, Command, OutputFormat, PlainFormat, negative};
use crate::config::sources::{self, Origins, SourceError};
use crate::config::{Common, PreflightConfig, ReportConfig, RunConfig, WatchConfig};
use crate::doctor::{self, DoctorConfig};
use crate::exit::Exit;
use crate::output::{JSON_SCHEMA, Marks};
use crate::{open_files, preflight, report, runner, secrecy, watch};

/// Runs the command that the process's arguments name, and gives the process's exit code.
#[must_use]
pub fn run() -> ExitCode {
    // Before anything secret is read. Where it is refused, what follows is as safe as any other program.
    let protected = secrecy::protect();
    let typed: Vec<_> = std::env::args_os().collect();
    let mut format = OutputFormat::asked_for(&typed, |name| std::env::var_os(name))
        .unwrap_or(OutputFormat::Table);
    let exit = match arguments(typed.clone()) {
        Ok((args, origins)) => {
            crate::cli::log::start(args.global.verbose, args.global.bpf_log);
            for complaint in unknown_variables() {
                log::warn!("{complaint}");
            }
            if let Err(error) = &protected {
                log::warn!("core dumps of this process could not be forbidden: {error}");
            }
            // The configuration file may have had a word in it.
            format = match &args.command {
                Command::Preflight(preflight) => preflight.output,
                Command::Watch(watch) => watch.observe.output,
                // What a command prints and how it ends are its own.
                Command::Run(_)
                | Command::Report(_)
                | Command::Doctor(_)
                | Command::Schema
                | Command::Completions(_) => OutputFormat::Table,
            };
            command(args, &origins, protected.as_ref().ok(), format)
        }
        Err(SourceError::CommandLine(error)) => match negative::complaint(&error, &typed) {
            Some(complaint) => complain(&complaint, Exit::Usage, format),
            None => refuse(&error, format),
        },
        Err(error) => complain(&error, Exit::Usage, format),
    };
    ExitCode::from(format.contract().code(exit))
}

/// What clap has to say: help and version come this way too, with code 0.
fn refuse(error: &clap::Error, format: OutputFormat) -> Exit {
    let printed = error.print();
    if !error.use_stderr() {
        return ending(printed, Exit::Pass, format);
    }
    // Usage and advice come in paragraphs of their own.
    let message = error.render().to_string();
    let sentence = message.split("\n\n").next().unwrap_or_default();
    let sentence = sentence.strip_prefix("error: ").unwrap_or(sentence);
    let _ = format.refuse(sentence, &mut io::stdout());
    Exit::Usage
}

fn command(
    args: Args,
    origins: &Origins,
    before: Option<&secrecy::Before>,
    format: OutputFormat,
) -> Exit {
    if let Err(error) = open_files::ensure() {
        return complain(&error, Exit::CouldNotMeasure, format);
    }
    let color = args.global.color;
    let common = Common::resolve(&args.global);
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            return complain(
                &format!("cannot start: {error}"),
                Exit::CouldNotMeasure,
                format,
            );
        }
    };
    match args.command {
        Command::Report(args) => {
            let config = match ReportConfig::resolve(args, origins) {
                Ok(config) => config,
                Err(error) => return complain(&error, Exit::Usage, format),
            };
            let result = report::run(&config, Marks::of_locale(), &mut io::stdout().lock());
            match result {
                Ok(()) => Exit::Pass,
                Err(error) if error.exit() == Exit::Pass => Exit::Pass,
                Err(error) => complain(&error, error.exit(), format),
            }
        }
        Command::Watch(args) => {
            let config = match runtime.block_on(WatchConfig::resolve(common, *args, origins)) {
                Ok(config) => config,
                Err(error) => return complain(&error, Exit::Usage, format),
            };
            match runtime.block_on(watch::run(&config, color)) {
                Ok(exit) => exit,
                Err(error) => complain(&error, error.exit(), format),
            }
        }
        Command::Run(args) => {
            let config = match runtime.block_on(RunConfig::resolve(common, *args, origins)) {
                Ok(config) => config,
                Err(error) => return complain(&error, Exit::Usage, format),
            };
            match runtime.block_on(runner::run(&config, color, before)) {
                Ok(exit) => exit,
                Err(error) => complain(&error, error.exit(), format),
            }
        }
        Command::Doctor(args) => {
            let diagnosis = doctor::run(&DoctorConfig::from(&common));
            let exit = if diagnosis.can_measure() {
                Exit::Pass
            } else {
                Exit::CouldNotMeasure
            };
            let mut out = stdout(color);
            let written = match args.output {
                PlainFormat::Table => doctor::table(&diagnosis, Marks::of_locale(), &mut out),
                PlainFormat::Json => doctor::json(&diagnosis, SystemTime::now(), &mut out),
            };
            ending(written, exit, format)
        }
        Command::Schema => put(JSON_SCHEMA.as_bytes(), format),
        Command::Completions(args) => {
            let mut script = Vec::new();
            // Into memory first: the generator panics where it cannot write.
            clap_complete::generate(args.shell, &mut Args::command(), "joinprobe", &mut script);
            put(&script, format)
        }
        Command::Preflight(args) => {
            let config = match PreflightConfig::resolve(common, *args, origins) {
                Ok(config) => config,
                Err(error) => return complain(&error, Exit::Usage, format),
            };
            match runtime.block_on(preflight::run(&config)) {
                Ok(outcome) => print(&outcome, &config, color),
                Err(error) => complain(&error, error.exit(), format),
            }
        }
    }
}

fn put(bytes: &[u8], format: OutputFormat) -> Exit {
    let mut out = io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    ending(written, Exit::Pass, format)
}

/// The arguments as typed, completed from the environment and the configuration file.
fn arguments(typed: Vec<OsString>) -> Result<(Args, Origins), SourceError> {
    let completed = sources::complete(&mut Args::command(), typed, |name| std::env::var_os(name))?;
    let args = Args::from_arg_matches(&completed.matches)?;
    Ok((args, completed.origins))
}

/// What is said of variables that somebody may take for ours.
fn unknown_variables() -> Vec<String> {
    let mut command = Args::command();
    command.build();
    sources::unknown_variables(&command, std::env::vars_os())
}

fn print(outcome: &preflight::Outcome, config: &PreflightConfig, color: ColorChoice) -> Exit {
    let mut out = stdout(color);
    let written = config
        .output
        .render(config.leniency())
        .write(&outcome.report, &mut out);
    ending(written, outcome.exit, config.output)
}

fn stdout(color: ColorChoice) -> AutoStream<io::Stdout> {
    let choice = match color {
        ColorChoice::Auto => AutoStream::choice(&io::stdout()),
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
    };
    AutoStream::new(io::stdout(), choice)
}

/// The exit code once the result has been written, or not.
fn ending(written: io::Result<()>, exit: Exit, format: OutputFormat) -> Exit {
    match written {
        // Whoever closed the pipe has read enough; the exit code still tells.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exit,
        Err(error) => complain(
            &format!(
                "cannot write the result to standard output: {error}; free the disk or redirect it elsewhere"
            ),
            // A full disk lets no node join that was found to fail.
            match exit {
                Exit::Fail => Exit::Fail,
                _ => Exit::CouldNotMeasure,
            },
            format,
        ),
        Ok(()) => exit,
    }
}

fn complain(error: &dyn std::fmt::Display, exit: Exit, format: OutputFormat) -> Exit {
    // With standard error closed there is nobody left to tell.
    let _ = writeln!(io::stderr(), "joinprobe: {error}");
    let _ = format.refuse(&error.to_string(), &mut io::stdout());
    exit
}
