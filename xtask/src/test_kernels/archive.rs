//! Debian's package archive, more of its suites than this machine is set up for.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::workspace::{finish, say};

/// Suites with kernels that the configured one may not have: the oldest that is kept up, the stable ones and what is
/// being prepared. One that is gone is skipped.
const SUITES: [&str; 4] = ["bullseye", "bookworm", "trixie", "trixie-backports"];
/// Those of the archive of security updates.
const SECURITY_SUITES: [&str; 3] = ["bullseye-security", "bookworm-security", "trixie-security"];
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A private set-up of apt; the machine's own stays as it is.
pub(crate) struct Archive {
    folder: PathBuf,
}

impl Archive {
    /// Makes the set-up under `folder` with the machine's own mirrors, and fetches the lists of packages.
    ///
    /// # Errors
    /// This is not Debian, or no list can be fetched.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let archive = Self {
            folder: folder.join("apt"),
        };
        for part in ["lists/partial", "cache/archives/partial"] {
            let part = archive.folder.join(part);
            fs::create_dir_all(&part).with_context(|| format!("cannot make {}", part.display()))?;
        }
        let sources = archive.sources();
        fs::write(&sources, entries(&mirrors()?)?)
            .with_context(|| format!("cannot write {}", sources.display()))?;
        say("fetching the lists of Debian's kernels");
        // Fails for one suite that is gone too; what is missing in the end shows below.
        let _ = archive
            .command("apt-get")
            .args(["update", "--quiet=2"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        Ok(archive)
    }

    /// Names of packages that begin like this.
    ///
    /// # Errors
    /// apt-cache fails.
    pub(crate) fn names(&self, start: &str) -> Result<Vec<String>> {
        self.lines(&["pkgnames", start])
    }

    /// The packages that a package needs and whose names begin like this.
    ///
    /// # Errors
    /// apt-cache fails.
    pub(crate) fn needed_by(&self, package: &str, start: &str) -> Result<Vec<String>> {
        let lines = self.lines(&["depends", "--important", package])?;
        Ok(lines
            .iter()
            .filter_map(|line| line.trim().strip_prefix("Depends: "))
            .filter(|name| name.starts_with(start))
            .map(str::to_owned)
            .collect())
    }

    /// Downloads packages into a folder and returns where they are.
    ///
    /// # Errors
    /// One cannot be had.
    pub(crate) fn download(&self, packages: &[String], into: &Path) -> Result<Vec<PathBuf>> {
        fs::create_dir_all(into).with_context(|| format!("cannot make {}", into.display()))?;
        finish(
            self.command("apt-get")
                .args(["download", "--quiet=2"])
                // The sandbox user may not write here, and root need not be sandboxed from what it verifies.
                .args(["-o", "APT::Sandbox::User="])
                .args(packages)
                .current_dir(into)
                .stdin(Stdio::null())
                .stdout(Stdio::null()),
        )?;
        let files = fs::read_dir(into)?.map(|entry| Ok(entry?.path()));
        files.collect()
    }

    fn lines(&self, words: &[&str]) -> Result<Vec<String>> {
        let output = self.command("apt-cache").args(words).output();
        let output = output.context("cannot start apt-cache")?;
        ensure!(
            output.status.success(),
            "apt-cache {} failed: {}",
            words.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text.lines().map(str::to_owned).collect())
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("LC_ALL", "C");
        for (setting, value) in [
            ("Dir::Etc::sourcelist", self.sources()),
            ("Dir::Etc::sourceparts", "/dev/null".into()),
            ("Dir::State::lists", self.folder.join("lists")),
            ("Dir::Cache", self.folder.join("cache")),
        ] {
            command.arg("-o");
            command.arg(format!("{setting}={}", value.display()));
        }
        command
    }

    fn sources(&self) -> PathBuf {
        self.folder.join("debian.sources")
    }
}

/// Where the machine gets Debian's packages from: the addresses of the archive and of security updates.
///
/// # Errors
/// apt names none.
pub(crate) fn mirrors() -> Result<Vec<String>> {
    let format = "$(ORIGIN) $(COMPONENT) $(REPO_URI)";
    let output = Command::new("apt-get")
        .args(["indextargets", "--format", format, "Created-By: Packages"])
        .output()
        .context("cannot start apt-get: Debian's packages are found through it")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut mirrors: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("Debian main "))
        .map(str::to_owned)
        .collect();
    mirrors.sort();
    mirrors.dedup();
    ensure!(
        !mirrors.is_empty(),
        "no Debian mirror is set up here (or `apt-get update` is due): what is needed is Debian's"
    );
    Ok(mirrors)
}

/// The sources file, in the format of sources.list(5).
fn entries(mirrors: &[String]) -> Result<String> {
    let mut text = String::new();
    for mirror in mirrors {
        let suites = if mirror.trim_end_matches('/').ends_with("-security") {
            SECURITY_SUITES.join(" ")
        } else {
            SUITES.join(" ")
        };
        writeln!(text, "Types: deb\nURIs: {mirror}\nSuites: {suites}")?;
        // Nothing but the packages: the other lists are larger.
        writeln!(
            text,
            "Components: main\nArchitectures: amd64\nTargets: Packages\nLanguages: none"
        )?;
        if Path::new(KEYRING).is_file() {
            writeln!(text, "Signed-By: {KEYRING}")?;
        }
        writeln!(text)?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn security_updates_have_suites_of_their_own() {
        let mirrors = ["http://a/debian/", "http://a/debian-security/"].map(str::to_owned);
        let text = entries(&mirrors).unwrap();
        let parts: Vec<&str> = text.split("\n\n").collect();
        assert!(parts[0].contains("\nSuites: bullseye bookworm "), "{text}");
        assert!(parts[1].contains("\nSuites: bullseye-security "), "{text}");
    }
}
