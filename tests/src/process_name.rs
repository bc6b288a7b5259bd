//! The name of this process.

use std::fs;

use anyhow::{Context, Result, ensure};

/// Of this thread it would be `/proc/thread-self/comm`.
const NAME: &str = "/proc/self/comm";

/// Runs `work` while this process has another name, of any bytes but zero, 15 at most. Tests that read the name must not
/// run beside it.
///
/// # Errors
/// When it cannot be renamed, and those of `work`.
pub fn renamed<T>(name: &[u8], work: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = fs::read(NAME).with_context(|| format!("cannot read {NAME}"))?;
    let before = before.strip_suffix(b"\n").unwrap_or(&before);
    fs::write(NAME, name).with_context(|| format!("cannot write {NAME}"))?;
    let done = work();
    fs::write(NAME, before).with_context(|| format!("cannot write {NAME}"))?;
    ensure!(name.len() < 16, "the kernel cuts the name {name:?}");
    done
}
