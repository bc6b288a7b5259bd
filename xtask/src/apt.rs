//! Packages of another suite or architecture, taken through apt without touching the machine's own apt configuration.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::test_kernels::archive::mirrors;
use crate::workspace::{finish, output_of};

/// What Debian's archive is signed with, as the package debian-archive-keyring has it.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Package lists of our own in a folder; nothing is ever installed, and root is not needed.
pub(crate) struct PrivateApt {
    folder: PathBuf,
    options: Vec<OsString>,
}

impl PrivateApt {
    /// The machine's own sources, read for another architecture too (`arm64`). Fetches the package lists.
    ///
    /// # Errors
    /// This is neither Debian nor Ubuntu, or the lists cannot be fetched.
    pub(crate) fn for_architecture(folder: &Path, other: &str) -> Result<Self> {
        let native = native_architecture()?;
        Self::fetch(
            folder,
            vec![
                format!("APT::Architectures::={native}").into(),
                format!("APT::Architectures::={other}").into(),
            ],
        )
    }

    /// One suite of Debian (`trixie-backports`) from the mirror that the machine's own sources name. Fetches the package
    /// lists.
    ///
    /// # Errors
    /// This is not Debian, Debian's keys are missing, or the lists cannot be fetched.
    pub(crate) fn for_suite(folder: &Path, suite: &str) -> Result<Self> {
        native_architecture()?;
        ensure!(
            Path::new(KEYRING).is_file(),
            "there is no {KEYRING} to verify Debian's packages with: install the package debian-archive-keyring"
        );
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let sources = folder.join("sources.list");
        let mirror = mirrors()?
            .into_iter()
            .find(|mirror| !mirror.trim_end_matches('/').ends_with("-security"))
            .context("no mirror of Debian's archive is set up here")?;
        let line = format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n");
        fs::write(&sources, line).with_context(|| format!("cannot write {}", sources.display()))?;
        Self::fetch(
            folder,
            vec![
                setting("Dir::Etc::sourcelist=", &sources),
                "Dir::Etc::sourceparts=-".into(),
            ],
        )
    }

    fn fetch(folder: &Path, settings: Vec<OsString>) -> Result<Self> {
        let lists = folder.join("lists");
        let cache = folder.join("cache");
        for folder in [lists.join("partial"), cache.join("archives/partial")] {
            fs::create_dir_all(&folder)
                .with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let own = [
            setting("Dir::State::lists=", &lists),
            setting("Dir::Cache=", &cache),
            // The user _apt may not write where we keep them.
            "APT::Sandbox::User=root".into(),
        ];
        let apt = Self {
            folder: folder.to_owned(),
            options: settings
                .into_iter()
                .chain(own)
                .flat_map(|setting| ["-o".into(), setting])
                .collect(),
        };
        finish(apt.command("apt-get").args(["update", "--quiet=2"]))
            .context("cannot fetch the package lists")?;
        Ok(apt)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(&self.options).env("LC_ALL", "C");
        command
    }

    /// The versions of a package, newest first; none when it is unknown.
    ///
    /// # Errors
    /// When apt-cache fails.
    pub(crate) fn versions(&self, package: &str) -> Result<Vec<String>> {
        let table = output_of(self.command("apt-cache").args(["madison", package]))?;
        Ok(table
            .lines()
            .filter_map(|line| line.split('|').nth(1))
            .map(|version| version.trim().to_owned())
            .collect())
    }

    /// Downloads packages (`NAME`, `NAME:ARCHITECTURE`, `NAME=VERSION`) and unpacks them into a folder.
    ///
    /// # Errors
    /// When one cannot be downloaded or unpacked.
    pub(crate) fn unpack(&self, packages: &[String], into: &Path) -> Result<()> {
        unpack(
            &mut self.command("apt-get"),
            packages,
            &self.folder.join("packages"),
            into,
        )
    }

    /// Removes the package lists.
    ///
    /// # Errors
    /// When they cannot be removed.
    pub(crate) fn forget(self) -> Result<()> {
        fs::remove_dir_all(&self.folder)
            .with_context(|| format!("cannot remove {}", self.folder.display()))
    }
}

/// The dependencies of a package whose names start like this, by this apt-cache.
///
/// # Errors
/// The package is unknown, or has no such dependency.
pub(crate) fn dependencies(
    apt_cache: &mut Command,
    package: &str,
    start: &str,
) -> Result<Vec<String>> {
    let text = output_of(apt_cache.args(["depends", "--important", package]))
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

/// Downloads packages by this apt-get into a folder of their own, unpacks them into another, and removes the first.
///
/// # Errors
/// When one cannot be downloaded or unpacked.
pub(crate) fn unpack(
    apt_get: &mut Command,
    packages: &[String],
    downloads: &Path,
    into: &Path,
) -> Result<()> {
    for folder in [downloads, into] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    finish(
        apt_get
            .args(["download", "--quiet=2"])
            .args(packages)
            .current_dir(downloads),
    )
    .context("apt-get cannot download them; `apt-get update` may be due")?;
    for package in fs::read_dir(downloads)? {
        let package = package?.path();
        finish(
            Command::new("dpkg-deb")
                .arg("--extract")
                .arg(&package)
                .arg(into),
        )?;
    }
    fs::remove_dir_all(downloads).with_context(|| format!("cannot remove {}", downloads.display()))
}

/// This machine's architecture in Debian's words.
fn native_architecture() -> Result<String> {
    for program in ["apt-get", "apt-cache", "dpkg-deb"] {
        if output_of(Command::new(program).arg("--version")).is_err() {
            bail!("{program} is missing: this is neither Debian nor Ubuntu");
        }
    }
    let name = output_of(Command::new("dpkg").arg("--print-architecture"))?;
    Ok(name.trim().to_owned())
}

fn setting(name: &str, path: &Path) -> OsString {
    let mut setting = OsString::from(name);
    setting.push(path);
    setting
}
