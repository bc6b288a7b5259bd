//! Whether a lab test can run here, and its turn to do so.

use std::fs::File;

use anyhow::{Context, Result, bail};

use crate::programs::locate;

/// Held while a lab test runs.
#[derive(Debug)]
pub struct Turn(#[allow(dead_code, reason = "the lock is held as long as the file is open")] File);

/// Waits until no other lab test runs on this machine: each measures time, and they would disturb one another.
///
/// Where a test cannot run at all, because this is not root or one of `programs` is missing, it says so on stderr and
/// returns `None`, which the test answers by returning.
///
/// # Errors
/// Under `CI=true` what is missing is an error: a test that did not run must not look like one that passed.
#[allow(
    clippy::print_stderr,
    reason = "the reason for a skipped test belongs in the test's output"
)]
pub fn take_turn(programs: &[&str]) -> Result<Option<Turn>> {
    if let Some(reason) = obstacle(programs) {
        if std::env::var("CI").is_ok_and(|value| value == "true") {
            bail!("this test cannot run: {reason}");
        }
        eprintln!("skipped: {reason}");
        return Ok(None);
    }
    let path = std::env::temp_dir().join("joinprobe-lab.lock");
    let file = File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
    file.lock()
        .with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(Some(Turn(file)))
}

fn obstacle(programs: &[&str]) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("the lab needs root".to_owned());
    }
    ["ip"]
        .iter()
        .chain(programs)
        .find(|program| locate(program).is_none())
        .map(|program| format!("the program {program} is missing (`cargo xtask test` installs it)"))
}
