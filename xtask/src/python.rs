//! A Python with the `hdrhistogram` package: a reader of our interval logs that is not ours.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::packages;
use crate::workspace::{finish, root, say};

/// Makes sure that the machine's Python, or one of its own under target/, has the package.
///
/// # Errors
/// When it cannot be installed.
pub(crate) fn ensure_present() -> Result<()> {
    let folder = root().join("target/hdrh");
    let own = folder.join("bin/python3");
    if has_package(Path::new("python3")) || has_package(&own) {
        return Ok(());
    }
    say(&format!(
        "preparing a Python with the package hdrhistogram in {}",
        folder.display()
    ));
    let venv = || {
        let mut command = Command::new("python3");
        command.args(["-m", "venv", "--clear"]).arg(&folder);
        command
    };
    let made = venv().stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !made.is_ok_and(|status| status.success()) {
        say("installing packages python3, python3-venv");
        packages::install_packages(&["python3", "python3-venv"])?;
        finish(&mut venv())?;
    }
    let package = ["-m", "pip", "install", "--quiet", "hdrhistogram"];
    finish(Command::new(&own).args(package))
        .context("the interval log's test needs Python's hdrhistogram package")
}

fn has_package(python: &Path) -> bool {
    Command::new(python)
        .args(["-c", "import hdrh"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
