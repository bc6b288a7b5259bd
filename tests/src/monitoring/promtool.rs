//! Prometheus' own checker.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, ensure};

/// Runs promtool with `input` and returns what it printed.
///
/// # Errors
/// When it complains; with its complaint.
pub fn promtool(args: &[&str], input: &str) -> Result<String> {
    let mut process = Command::new("promtool")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start promtool")?;
    let mut stdin = process.stdin.take().context("no stdin")?;
    let input = input.to_owned();
    let writer = thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = process.wait_with_output()?;
    // It may end without reading everything.
    let _ = writer.join();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    ensure!(output.status.success(), "promtool {args:?}: {said}");
    Ok(said)
}
