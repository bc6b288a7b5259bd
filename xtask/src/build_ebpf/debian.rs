//! What Debian has for making eBPF: rustc-web, a newer compiler than the release's own, kept up to date for browsers;
//! and, in its newer suites, the library source of recent compilers.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::apt::{self, PrivateApt};
use crate::workspace::say;

/// Packages that hold the compiler, its libraries and the library source. More, with version numbers in their names,
/// are told by the packages' own dependencies.
const PACKAGES: [&str; 3] = ["rustc-web", "libstd-rust-web-dev", "rust-web-src"];
/// Suites that may have the library source of a nightly's release, the steadiest first.
const SUITES: [&str; 3] = ["trixie-backports", "forky", "sid"];

/// Folder of the shared libraries of an unpacked compiler.
pub(super) fn library_folder(unpacked: &Path) -> Result<PathBuf> {
    let folder = unpacked
        .join("usr/lib")
        .join(format!("{}-linux-gnu", std::env::consts::ARCH));
    ensure!(folder.is_dir(), "there is no {}", folder.display());
    Ok(folder)
}

/// Downloads rustc-web and unpacks it; nothing is installed, and root is not needed.
pub(super) fn download_compiler(folder: &Path) -> Result<()> {
    let mut packages: Vec<String> = PACKAGES.map(str::to_owned).into();
    let libraries = find_dependencies("libstd-rust-web-dev", "libstd-rust-web-")?;
    for package in &libraries {
        packages.extend(find_dependencies(package, "libllvm")?);
    }
    packages.extend(libraries);
    say(&format!(
        "downloading {} (115 MB) and unpacking them into {}; nothing is installed",
        packages.join(", "),
        folder.display()
    ));
    apt::unpack(
        &mut Command::new("apt-get"),
        &packages,
        &folder.join("packages"),
        folder,
    )
}

fn find_dependencies(package: &str, start: &str) -> Result<Vec<String>> {
    apt::dependencies(&mut Command::new("apt-cache"), package, start)
}

/// Downloads the library source of a release (`1.97`) from the first suite that has it and unpacks it into a folder.
pub(super) fn download_source(release: &str, folder: &Path) -> Result<()> {
    let start = format!("{release}.");
    for suite in SUITES {
        let apt = PrivateApt::for_suite(&folder.join("apt"), suite)?;
        let versions = apt.versions("rust-src")?;
        if let Some(version) = versions.iter().find(|version| version.starts_with(&start)) {
            say(&format!(
                "downloading rust-src {version} from {suite} and unpacking it into {}; nothing is installed",
                folder.display()
            ));
            apt.unpack(&[format!("rust-src={version}")], folder)?;
            return apt.forget();
        }
        apt.forget()?;
    }
    bail!("no rust-src {release} is in Debian's {}", SUITES.join(", "))
}
