//! rustup's nightly compiler, and how it is given library source without changing what rustup keeps.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::workspace::output_of;

/// The compiler, by its own path.
pub(super) fn rustc() -> Result<PathBuf> {
    let path = output_of(Command::new("rustup").args(["which", "--toolchain", "nightly", "rustc"]))
        .context("rustup has no nightly")?;
    Ok(PathBuf::from(path.trim()))
}

/// The folder of its shared libraries, LLVM among them.
pub(super) fn libraries(rustc: &Path) -> Result<PathBuf> {
    let folder = rustc.parent().and_then(Path::parent);
    Ok(folder
        .with_context(|| format!("{} is in no toolchain", rustc.display()))?
        .join("lib"))
}

/// Its release without the patch level, which a nightly has not: `1.97`.
pub(super) fn release() -> Result<String> {
    let about = output_of(Command::new(rustc()?).arg("-vV"))?;
    let release = about
        .lines()
        .find_map(|line| line.strip_prefix("release: "))
        .context("rustup's nightly does not say its release")?;
    let mut numbers = release.split('.');
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) => Ok(format!("{major}.{minor}")),
        _ => Ok(release.to_owned()),
    }
}

/// Where the source for it is unpacked: a folder for each release, so that a newer nightly does not meet an older source.
pub(super) fn source_folder(unpacked: &Path) -> PathBuf {
    let release = release().unwrap_or_default();
    unpacked.join(format!("rust-src-{release}"))
}

/// Lays a system root out whose library source is the unpacked one and whose libraries are the nightly's, and returns a
/// program that runs the nightly on it.
pub(super) fn with_source_beside(unpacked: &Path) -> Result<PathBuf> {
    let rustc = rustc()?;
    let folder = source_folder(unpacked);
    let source = library_in(&folder)?;
    let root = folder.join("sysroot");
    let own = libraries(&rustc)?.join("rustlib");
    let laid = root.join("lib/rustlib");
    for folder in [laid.join("src/rust"), root.join("bin")] {
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    link(&own.join(&host), &laid.join(&host))?;
    link(&source, &laid.join("src/rust/library"))?;
    let program = root.join("bin/rustc");
    let text = format!(
        "#!/bin/sh\nexec {} --sysroot {} \"$@\"\n",
        quoted(&rustc)?,
        quoted(&root)?
    );
    fs::write(&program, text).with_context(|| format!("cannot write {}", program.display()))?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    Ok(program)
}

/// `usr/src/rustc-1.97.1/library` of an unpacked rust-src.
fn library_in(folder: &Path) -> Result<PathBuf> {
    let sources = folder.join("usr/src");
    let entries =
        fs::read_dir(&sources).with_context(|| format!("no rust-src in {}", folder.display()))?;
    for entry in entries {
        let library = entry?.path().join("library");
        if library.is_dir() {
            return Ok(library);
        }
    }
    anyhow::bail!("no library source in {}", sources.display())
}

fn link(to: &Path, at: &Path) -> Result<()> {
    if let Err(error) = fs::remove_file(at)
        && error.kind() != ErrorKind::NotFound
    {
        return Err(error).with_context(|| format!("cannot replace {}", at.display()));
    }
    let to = to
        .canonicalize()
        .with_context(|| format!("there is no {}", to.display()))?;
    symlink(to, at).with_context(|| format!("cannot make {}", at.display()))
}

/// A path as a word of a shell.
fn quoted(path: &Path) -> Result<String> {
    let path = std::path::absolute(path)?;
    let text = path.to_str().with_context(|| {
        format!(
            "{} is not UTF-8: choose another folder by JOINPROBE_EBPF_TOOLCHAIN",
            path.display()
        )
    })?;
    ensure!(
        !text.contains('\''),
        "{text} has a quote in it: choose another folder by JOINPROBE_EBPF_TOOLCHAIN"
    );
    Ok(format!("'{text}'"))
}
