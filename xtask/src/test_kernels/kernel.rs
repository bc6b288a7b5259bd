//! One of Debian's kernels: found, downloaded, unpacked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::NEWEST;
use super::archive::Archive;
use crate::workspace::{finish, say};

/// Modules that the tests use: the link's devices and what `ss` and joinprobe ask about sockets, in the order in which
/// they are loaded.
const MODULES: [&str; 3] = ["tun", "inet_diag", "tcp_diag"];
const PREFIX: &str = "linux-image-";
const SUFFIX: &str = "-cloud-amd64";

/// An unpacked kernel.
pub(crate) struct Kernel {
    /// The package it comes from.
    pub(crate) package: String,
    /// What is booted.
    pub(super) image: PathBuf,
    /// In the order in which they are loaded.
    pub(super) modules: Vec<PathBuf>,
}

impl Kernel {
    /// Its release, without what all packages share.
    pub(crate) fn name(&self) -> &str {
        self.package.trim_start_matches(PREFIX)
    }
}

/// Finds the latest kernel of a series, or the newest of all, and unpacks it unless it has been.
pub(crate) fn get(archive: &Archive, series: &str, folder: &Path) -> Result<Kernel> {
    let names = archive.names(PREFIX)?;
    let Some(package) = latest(&names, series) else {
        bail!("Debian has no {PREFIX}{series}…{SUFFIX}");
    };
    let home = folder.join(package);
    if !home.is_dir() {
        say(&format!("downloading {package}"));
        let temporary = folder.join(format!("{package}.new"));
        let _ = fs::remove_dir_all(&temporary);
        unpack(archive, package, &temporary)?;
        fs::rename(&temporary, &home).context("cannot keep the unpacked kernel")?;
    }
    let modules = fs::read_dir(&home)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    let module = |name: &&str| {
        let file = format!("{name}.ko");
        modules.iter().find(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(&file))
        })
    };
    Ok(Kernel {
        package: package.to_owned(),
        image: home.join("vmlinuz"),
        modules: MODULES.iter().filter_map(module).cloned().collect(),
    })
}

/// Keeps of a kernel's packages what is needed: a tenth of a percent of their files.
fn unpack(archive: &Archive, package: &str, into: &Path) -> Result<()> {
    let mut packages = vec![package.to_owned()];
    // Since 7.3 the image is in one package of its own and the modules in another.
    for start in ["linux-binary-", "linux-modules-"] {
        packages.extend(archive.needed_by(package, start)?);
    }
    let (debs, all) = (into.join("debs"), into.join("all"));
    for deb in archive.download(&packages, &debs)? {
        finish(Command::new("dpkg").arg("-x").arg(deb).arg(&all))?;
    }
    keep(&all, into)?;
    for folder in [debs, all] {
        fs::remove_dir_all(folder)?;
    }
    Ok(())
}

/// Moves the image and the modules of a folder, and of those in it, out of it.
fn keep(folder: &Path, into: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            keep(&entry.path(), into)?;
        } else if name.starts_with("vmlinuz") {
            fs::rename(entry.path(), into.join("vmlinuz"))?;
        } else if MODULES.iter().any(|module| is_module(&name, module)) {
            fs::rename(entry.path(), into.join(name))?;
        }
    }
    Ok(())
}

/// Whether a file is this module, compressed or not.
fn is_module(file: &str, module: &str) -> bool {
    file.strip_prefix(module)
        .is_some_and(|rest| rest.starts_with(".ko"))
}

/// The package with the highest version of a series.
fn latest<'a>(names: &'a [String], series: &str) -> Option<&'a str> {
    let wanted = numbers(series);
    names
        .iter()
        .filter_map(|name| {
            let version = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
            let version = numbers(version);
            // Packages such as linux-image-cloud-amd64 have none.
            (version.len() > 2 && (series == NEWEST || version.starts_with(&wanted)))
                .then_some((version, name.as_str()))
        })
        .max()
        .map(|(_, name)| name)
}

/// The numbers in a version, without Debian's own after `+`.
fn numbers(version: &str) -> Vec<u32> {
    let version = version.split('+').next().unwrap_or_default();
    version
        .split(['.', '-'])
        .map_while(|part| part.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_of_a_series_is_found() {
        let names = [
            "linux-image-cloud-amd64",
            "linux-image-6.1-cloud-amd64",
            "linux-image-5.10.0-9-cloud-amd64",
            "linux-image-5.10.0-46-cloud-amd64",
            "linux-image-5.10.0-46-cloud-amd64-dbg",
            "linux-image-6.1.0-57-cloud-amd64",
            "linux-image-6.12.117+deb12-cloud-amd64",
            "linux-image-6.12.118+deb13-cloud-amd64",
            "linux-image-7.3.4+deb13-cloud-amd64",
            "linux-image-7.3.4+deb13-amd64",
        ]
        .map(str::to_owned);
        for (series, package) in [
            ("5.10", "linux-image-5.10.0-46-cloud-amd64"),
            ("6.1", "linux-image-6.1.0-57-cloud-amd64"),
            ("6.12", "linux-image-6.12.118+deb13-cloud-amd64"),
            (NEWEST, "linux-image-7.3.4+deb13-cloud-amd64"),
        ] {
            assert_eq!(latest(&names, series), Some(package));
        }
        assert_eq!(latest(&names, "4.19"), None);
    }
}
