//! Debian's and Ubuntu's rustc-web: a newer compiler than the release's own, kept up to date for browsers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::output_of;
use crate::workspace::{finish, say};

/// Packages that hold the compiler, its libraries and the library source. `LLVM` and `STD` carry version numbers in
/// their names, which the packages' own dependencies tell.
const PACKAGES: [&str; 3] = ["rustc-web", "libstd-rust-web-dev", "rust-web-src"];

/// Folder of the shared libraries of an unpacked compiler.
pub(super) fn library_folder(unpacked: &Path) -> Result<PathBuf> {
    let folder = unpacked
        .join("usr/lib")
        .join(format!("{}-linux-gnu", std::env::consts::ARCH));
    ensure!(folder.is_dir(), "there is no {}", folder.display());
    Ok(folder)
}

/// Downloads the packages and unpacks them; nothing is installed, and root is not needed.
pub(super) fn download(folder: &Path) -> Result<()> {
    for program in ["apt-get", "apt-cache", "dpkg"] {
        if output_of(Command::new(program).arg("--version")).is_err() {
            bail!("{program} is missing: this is neither Debian nor Ubuntu");
        }
    }
    let archive = folder.join("packages");
    fs::create_dir_all(&archive).with_context(|| format!("cannot make {}", archive.display()))?;
    let mut packages: Vec<String> = PACKAGES.map(str::to_owned).into();
    packages.extend(dependencies("libstd-rust-web-dev", "libstd-rust-web-")?);
    packages.extend(dependencies(
        packages.last().map_or("", String::as_str),
        "libllvm",
    )?);
    say(&format!(
        "downloading {} (115 MB) and unpacking them into {}; nothing is installed",
        packages.join(", "),
        folder.display()
    ));
    finish(
        Command::new("apt-get")
            .arg("download")
            .args(&packages)
            .current_dir(&archive),
    )
    .context("apt-get cannot download them; `apt-get update` may be due")?;
    for package in fs::read_dir(&archive)? {
        let package = package?.path();
        finish(Command::new("dpkg").arg("-x").arg(&package).arg(folder))?;
        fs::remove_file(&package)?;
    }
    Ok(())
}

/// The dependencies of a package whose names start like this.
fn dependencies(package: &str, start: &str) -> Result<Vec<String>> {
    let text = output_of(Command::new("apt-cache").args(["depends", "--important", package]))
        .with_context(|| format!("apt knows no {package}"))?;
    let names: Vec<String> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .filter(|name| name.starts_with(start))
        .map(str::to_owned)
        .collect();
    ensure!(!names.is_empty(), "{package} depends on no {start}…");
    Ok(names)
}
