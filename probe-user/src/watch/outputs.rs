//! The outputs a configuration asks for.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write};

use anstream::AutoStream;
use anstream::stream::{AsLockedWrite, RawStream};

use super::WatchError;
use crate::cli::{ColorChoice, OutputFormat};
use crate::config::ObserveConfig;
use crate::output::{
    Exporters, HistogramLog, JsonLines, Listen, LiveTable, Marks, Screen, Table, Textfile,
    VerdictOnly,
};

/// Where the reports go that are for people or pipes.
#[derive(Debug)]
pub enum Destination {
    /// Standard output.
    StandardOutput,
    /// Standard error, because standard output is a command's.
    StandardError,
    /// A file.
    File(File),
}

/// Opens them. Nothing is written yet.
///
/// # Errors
/// A path that cannot serve.
pub(crate) fn open(
    config: &ObserveConfig,
    destination: Destination,
    color: ColorChoice,
) -> Result<Exporters, WatchError> {
    let mut exporters = Exporters::default();
    match destination {
        Destination::StandardOutput => {
            let out = io::stdout();
            let choice = choice(color, || AutoStream::choice(&out));
            let screen = (out.is_terminal() && knows_escapes()).then_some(Screen {
                size: terminal_size,
                foreign_lines: crate::cli::log::lines,
                colourless: choice == anstream::ColorChoice::Never,
            });
            let choice = match screen {
                Some(_) => anstream::ColorChoice::AlwaysAnsi,
                None => choice,
            };
            add(
                &mut exporters,
                config,
                "standard output",
                out,
                choice,
                screen,
            );
        }
        Destination::StandardError => {
            let out = io::stderr();
            let choice = choice(color, || AutoStream::choice(&out));
            add(&mut exporters, config, "standard error", out, choice, None);
        }
        Destination::File(file) => {
            let choice = choice(color, || anstream::ColorChoice::Never);
            add(&mut exporters, config, "--report-file", file, choice, None);
        }
    }
    if let Some(address) = config.listen {
        exporters.add(Listen::new(address, config.interval));
    }
    if let Some(path) = &config.textfile {
        exporters.add(Textfile::new(path)?);
    }
    if let Some(path) = &config.hlog {
        exporters.add(HistogramLog::new(path));
    }
    Ok(exporters)
}

/// Whether the terminal has a cursor that can be moved.
fn knows_escapes() -> bool {
    std::env::var_os("TERM").is_some_and(|kind| !kind.is_empty() && kind != "dumb")
}

fn terminal_size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
    Some((size.ws_col.into(), size.ws_row.into()))
}

fn choice(
    color: ColorChoice,
    auto: impl FnOnce() -> anstream::ColorChoice,
) -> anstream::ColorChoice {
    match color {
        ColorChoice::Auto => auto(),
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
    }
}

fn add<W: RawStream + AsLockedWrite + Write + 'static>(
    exporters: &mut Exporters,
    config: &ObserveConfig,
    name: &str,
    out: W,
    color: anstream::ColorChoice,
    screen: Option<Screen>,
) {
    match config.output {
        OutputFormat::Json => exporters.add(JsonLines::new(out).called(name)),
        OutputFormat::Table => {
            let table = Table {
                marks: Marks::of_locale(),
            };
            let table = LiveTable::new(table, AutoStream::new(out, color), screen);
            exporters.add(table.called(name));
        }
        // What these say is said once, at the end.
        OutputFormat::Short | OutputFormat::Nagios | OutputFormat::Npd | OutputFormat::Junit => {
            let render = config.output.render(config.decision.leniency);
            exporters.add(VerdictOnly::new(render, out).called(name));
        }
    }
}
