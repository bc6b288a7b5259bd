//! Running a shell script with stubs in place of the programs it calls.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::blocks::blocks;

/// A folder of programs that write down how they were called.
pub(crate) struct Stubs {
    folder: TempDir,
}

impl Stubs {
    /// A joinprobe that ends with this code, if there is to be one; everything else succeeds.
    pub(crate) fn new(joinprobe: Option<u8>) -> Result<Self> {
        let stubs = Self {
            folder: tempfile::tempdir()?,
        };
        let programs = ["kubeadm", "systemd-run", "systemctl"].map(|name| (name, 0));
        for (name, code) in programs
            .into_iter()
            .chain(joinprobe.map(|code| ("joinprobe", code)))
        {
            stubs.put(
                name,
                &format!("#!/bin/sh\necho \"{name} $*\" >> \"$CALLS\"\nexit {code}\n"),
            )?;
        }
        Ok(stubs)
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// An executable file in the folder.
    pub(crate) fn put(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path().join(name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(())
    }

    /// Runs a script of the folder; whether it succeeded, and what was called.
    pub(crate) fn run(&self, interpreter: &str, script: &str) -> Result<(bool, String)> {
        let calls = self.path().join("calls");
        fs::write(&calls, "")?;
        fs::write(self.path().join("script"), script)?;
        let status = Command::new(interpreter)
            .arg(self.path().join("script"))
            .env("PATH", format!("{}:/usr/bin:/bin", self.path().display()))
            .env("CALLS", &calls)
            .stderr(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .status()
            .with_context(|| format!("{interpreter} does not start"))?;
        Ok((status.success(), fs::read_to_string(calls)?))
    }
}

/// joinprobe's exit codes, and the shell's for a program that is not there.
pub(crate) const CODES: [Option<u8>; 7] =
    [Some(0), Some(1), Some(2), Some(3), Some(4), Some(5), None];

#[test]
fn the_join_script_stops_on_3_only() -> Result<()> {
    let all = blocks("docs/kubeadm.md", "sh")?;
    let script = all
        .iter()
        .find(|block| block.contains("kubeadm join --config") && block.contains("code=$?"))
        .context("no script that joins")?;
    for code in CODES {
        let (success, calls) = Stubs::new(code)?.run("/bin/sh", script)?;
        let joined = calls.contains("kubeadm join --config kubeadm-join.yaml");
        assert_eq!(joined, code != Some(3), "{code:?}: {calls}");
        assert_eq!(success, joined, "{code:?}");
    }
    Ok(())
}

#[test]
fn every_snippet_runs() -> Result<()> {
    let mut ran = 0;
    for page in ["docs/kubeadm.md", "docs/cluster-api.md"] {
        for block in blocks(page, "sh")? {
            let (success, calls) = Stubs::new(Some(0))?.run("/bin/sh", &block)?;
            ensure!(success, "{page}: fails although all is well:\n{block}");
            ensure!(
                calls.contains("joinprobe "),
                "{page}: never calls it:\n{block}"
            );
            ran += 1;
        }
    }
    ensure!(ran > 5, "only {ran} snippets");
    Ok(())
}
