//! Man pages and shell completions, generated from joinprobe's own arguments.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;

use crate::workspace;

/// Options of `cargo xtask man` and `cargo xtask completions`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where to write them [default: `man` or `completions` in the target folder]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Which of the two.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Manual {
    /// Man pages.
    Man,
    /// Shell completions.
    Completions,
}

impl Manual {
    /// What the generator calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Man => "man",
            Self::Completions => "completions",
        }
    }
}

/// Writes them.
///
/// # Errors
/// When joinprobe does not build or the folder cannot be written to.
pub(crate) fn run(manual: Manual, args: &Args) -> Result<ExitCode> {
    let folder = args.out.as_deref().map_or_else(
        || Ok(workspace::target().join(manual.name())),
        std::path::absolute,
    )?;
    write(manual, &folder)?;
    workspace::say(&format!("written to {}", folder.display()));
    Ok(ExitCode::SUCCESS)
}

/// Writes them into a folder, which is made.
///
/// # Errors
/// When joinprobe does not build or the folder cannot be written to.
pub(crate) fn write(manual: Manual, folder: &Path) -> Result<()> {
    let mut cargo = workspace::cargo("run")?;
    cargo.args([
        "--quiet",
        "--package",
        "probe-user",
        "--example",
        "manuals",
        "--",
    ]);
    workspace::finish(cargo.arg(manual.name()).arg(folder))
}
