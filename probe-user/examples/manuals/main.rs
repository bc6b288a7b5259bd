//! Writes man pages and shell completions from the arguments joinprobe takes: `cargo xtask man`, `cargo xtask
//! completions`. An example, so that the binary carries neither generator.

use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::{CommandFactory as _, Parser, ValueEnum};
use clap_complete::Shell;
use probe_user::cli::Args;

/// What to write.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Manual {
    /// Man pages, one per command.
    Man,
    /// Completions for bash, zsh and fish.
    Completions,
}

#[derive(Debug, Parser)]
struct Options {
    /// What to write.
    manual: Manual,
    /// Where to; made if it is not there.
    folder: PathBuf,
}

fn main() -> io::Result<()> {
    let options = Options::parse();
    fs::create_dir_all(&options.folder)?;
    match options.manual {
        Manual::Man => clap_mangen::generate_to(Args::command(), &options.folder),
        Manual::Completions => completions(&options.folder),
    }
}

fn completions(folder: &Path) -> io::Result<()> {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut Args::command(), "joinprobe", folder)?;
    }
    Ok(())
}
