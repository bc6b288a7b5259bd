//! Whether a lab test can run here, and its turn to do so.

use std::fs::File;

use anyhow::{Context, Result, bail};

use crate::programs::locate;

/// The program under test.
const JOINPROBE: &str = "joinprobe";

/// Held while a lab test runs.
#[derive(Debug)]
pub struct Turn(#[allow(dead_code, reason = "the lock is held as long as the file is open")] File);

/// Waits until no other lab test runs on this machine: each measures time, and they would disturb one another.
///
/// Where a test cannot run at all, because this is not root or one of `programs` is missing, it says so on stderr and
/// returns `None`, which the test answers by returning. The program `joinprobe` is built where it is not at hand,
/// before the turn begins: nobody else shall wait for a compiler.
///
/// # Errors
/// Under `CI=true` what is missing is an error: a test that did not run must not look like one that passed.
pub fn take_turn(programs: &[&str]) -> Result<Option<Turn>> {
    let root = rustix::process::geteuid().is_root();
    let obstacle = (!root).then(|| "the lab needs root".to_owned());
    if !free_of(
        obstacle
            .or_else(|| missing(&["ip"]))
            .or_else(|| missing(programs)),
    )? {
        return Ok(None);
    }
    if programs.contains(&JOINPROBE) {
        crate::lab::binary()?;
    }
    let path = std::env::temp_dir().join("joinprobe-lab.lock");
    let file = File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
    file.lock()
        .with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(Some(Turn(file)))
}

/// Whether a test that needs `programs`, but neither root nor the lab, can run. Where it cannot, stderr says why.
///
/// # Errors
/// As for [`take_turn`].
pub fn can_run(programs: &[&str]) -> Result<bool> {
    free_of(missing(programs))
}

#[allow(
    clippy::print_stderr,
    reason = "the reason for a skipped test belongs in the test's output"
)]
fn free_of(obstacle: Option<String>) -> Result<bool> {
    let Some(reason) = obstacle else {
        return Ok(true);
    };
    if std::env::var("CI").is_ok_and(|value| value == "true") {
        bail!("this test cannot run: {reason}");
    }
    eprintln!("skipped: {reason}");
    Ok(false)
}

fn missing(programs: &[&str]) -> Option<String> {
    programs
        .iter()
        .filter(|program| **program != JOINPROBE)
        .find(|program| locate(program).is_none())
        .map(|program| format!("the program {program} is missing (`cargo xtask test` installs it)"))
}
