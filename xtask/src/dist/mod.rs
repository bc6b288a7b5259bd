//! `cargo xtask dist`: what a release consists of, the same bytes each time.

mod archive;
mod check;
mod layout;
mod licences;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum as _;

use crate::manuals::{self, Manual};
use crate::workspace::{joinprobe, root, say, target};
use layout::Layout;

/// Builds a static joinprobe and packs it with man pages, completions, documentation, examples, the systemd unit and
/// licence texts into a tarball, beside its SHA-256 checksum.
///
/// The tarball is built twice and compared, and its program is looked at: it must be static and must run in an empty
/// folder. `JOINPROBE_BIN` names a program to pack instead of building one.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where to write [default: `dist` in the target folder]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// # Errors
/// When something does not build, a licence text is missing, or two tarballs differ.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let out = args
        .out
        .as_deref()
        .map_or_else(|| Ok(target().join("dist")), std::path::absolute)?;
    let binary = joinprobe()?;
    check::is_static(&binary)?;
    let name = format!(
        "joinprobe-{}-linux-{}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH
    );
    let first = pack(&binary, &name, &out)?;
    let again = pack(&binary, &name, &out.join("again"))?;
    ensure!(
        std::fs::read(&first)? == std::fs::read(&again)?,
        "{} and {} are of the same files and differ",
        first.display(),
        again.display()
    );
    std::fs::remove_dir_all(out.join("again"))?;
    let checksum = archive::checksum(&first)?;
    check::runs_alone(&first, &name)?;
    say(&format!("written: {}", first.display()));
    say(&format!("written: {}", checksum.display()));
    Ok(ExitCode::SUCCESS)
}

/// Lays everything out below `out` and packs it; the tarball's path.
fn pack(binary: &Path, name: &str, out: &Path) -> Result<PathBuf> {
    let folder = out.join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let layout = Layout::new(&folder)?;
    layout.program(binary, "bin/joinprobe")?;
    for manual in Manual::value_variants() {
        let written = out.join(format!("{name}-{}", manual.name()));
        manuals::write(*manual, &written)?;
        layout.manuals(*manual, &written)?;
        std::fs::remove_dir_all(&written)?;
    }
    layout.repository(root())?;
    layout.text(
        "share/doc/joinprobe/THIRD-PARTY-LICENCES.txt",
        &licences::text()?,
    )?;
    let tarball = out.join(format!("{name}.tar.gz"));
    archive::pack(&folder, &tarball, timestamp())?;
    std::fs::remove_dir_all(&folder)?;
    Ok(tarball)
}

/// Every file's time, seconds since 1970: `SOURCE_DATE_EPOCH` as reproducible-builds.org defines it, else the commit's,
/// else 0.
fn timestamp() -> u64 {
    let named = std::env::var("SOURCE_DATE_EPOCH").ok();
    let committed = || {
        let log = Command::new("git")
            .args(["log", "-1", "--format=%ct"])
            .current_dir(root())
            .output()
            .ok()?;
        String::from_utf8(log.stdout).ok()
    };
    named
        .or_else(committed)
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0)
}
