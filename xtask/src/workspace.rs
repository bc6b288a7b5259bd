//! Where things are, and how cargo is called.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::static_build;

/// The workspace's top folder.
pub(crate) fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own)
}

/// A path inside the workspace.
pub(crate) fn path(relative: &str) -> PathBuf {
    root().join(relative)
}

/// Where cargo builds.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// A cargo command in the workspace, with the protocol compiler that etcd's client needs to build.
///
/// # Errors
/// When there is no protocol compiler for this machine.
pub(crate) fn cargo(verb: &str) -> Result<Command> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root()).arg(verb);
    if env::var_os("PROTOC").is_none() {
        let protoc = protoc_bin_vendored::protoc_bin_path().context(
            "there is no bundled protoc for this machine: install one and name it in PROTOC",
        )?;
        cargo.env("PROTOC", protoc);
    }
    Ok(cargo)
}

/// Runs a command to its end and fails when it does.
///
/// # Errors
/// When it cannot be started or fails; named by its words.
pub(crate) fn finish(command: &mut Command) -> Result<()> {
    let words: Vec<OsString> = [command.get_program()]
        .into_iter()
        .chain(command.get_args())
        .map(Into::into)
        .collect();
    let words = words.join(" ".as_ref());
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", words.display()))?;
    if !status.success() {
        bail!("{} failed ({status})", words.display());
    }
    Ok(())
}

/// Runs a command to its end and returns what it printed; a failure carries what it wrote to stderr.
///
/// # Errors
/// When it cannot be started or fails.
pub(crate) fn output_of(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The release build of joinprobe, static as it is shipped, or the one that `JOINPROBE_BIN` names.
///
/// # Errors
/// When it does not build or is not there.
pub(crate) fn joinprobe() -> Result<PathBuf> {
    if let Some(named) = env::var_os("JOINPROBE_BIN").map(PathBuf::from) {
        ensure!(
            named.is_file(),
            "JOINPROBE_BIN names {}, which is no file",
            named.display()
        );
        return Ok(named);
    }
    static_build::joinprobe("release")
}

/// Says on stderr what is going on: stdout belongs to what the task runs.
#[allow(clippy::print_stderr, reason = "this is the one place that does")]
pub(crate) fn say(text: &str) {
    eprintln!("xtask: {text}");
}
