//! The programs that a virtual machine runs, and the shared libraries they need.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use joinprobe_lab::programs::locate;
use serde_json::Value;

use crate::workspace::cargo;

/// Programs beside the tests' own and joinprobe; what a shell script wants else, busybox has.
pub(super) const PROGRAMS: [&str; 6] = ["ip", "tcpdump", "setpriv", "etcd", "unshare", "strace"];

/// Builds the program of tests/tests/kernel and returns where it is.
pub(super) fn kernel_tests() -> Result<PathBuf> {
    let output = cargo("test")?
        .args(["--package", "joinprobe-lab", "--test", "kernel", "--no-run"])
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    ensure!(output.status.success(), "the kernel tests do not build");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == "kernel")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .context("cargo does not say where the kernel tests are")
}

/// Copies a program without its debug information.
pub(super) fn copy_stripped(program: &Path, to: &Path) -> Result<()> {
    let stripped = Command::new("strip")
        .arg("-o")
        .arg(to)
        .arg(program)
        .status();
    // Without binutils it only takes more memory.
    if !stripped.is_ok_and(|status| status.success()) {
        fs::copy(program, to).with_context(|| format!("cannot copy {}", program.display()))?;
    }
    Ok(())
}

/// Where a program is.
pub(super) fn find(name: &str) -> Result<PathBuf> {
    locate(name).with_context(|| format!("the program {name} is missing"))
}

/// The shared libraries that programs need, with the dynamic linker, by the paths at which it looks for them.
pub(super) fn libraries(programs: &[PathBuf]) -> Result<BTreeSet<PathBuf>> {
    let mut libraries = BTreeSet::new();
    for program in programs {
        // It fails for a static program, which needs none.
        let output = Command::new("ldd").arg(program).output();
        let output = output.context("cannot start ldd")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        libraries.extend(
            text.split_whitespace()
                .filter(|word| word.starts_with('/'))
                .map(PathBuf::from)
                .filter(|path| path.is_file()),
        );
    }
    Ok(libraries)
}
