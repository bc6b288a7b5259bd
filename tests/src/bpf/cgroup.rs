//! A cgroup of a test's own, so that attaching there concerns nobody else.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::programs::command;
use crate::unique;

/// A child of the cgroup v2 root that this process, and what it starts, is in. Dropping it moves the process back and
/// removes it.
#[derive(Debug)]
pub struct Cgroup {
    root: PathBuf,
    path: PathBuf,
}

impl Cgroup {
    /// Makes it and moves this process into it.
    ///
    /// # Errors
    /// When no cgroup v2 hierarchy is mounted, or it cannot be written.
    pub fn enter() -> Result<Self> {
        let root = root()?;
        let path = root.join(unique::name());
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        let cgroup = Self { root, path };
        move_here(&cgroup.path)?;
        Ok(cgroup)
    }

    /// Its folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The ids of the programs that bpftool sees attached here.
    ///
    /// # Errors
    /// When bpftool fails.
    pub fn attached(&self) -> Result<Vec<u32>> {
        let output = command("bpftool")
            .args(["-j", "cgroup", "show"])
            .arg(&self.path)
            .output()?;
        let programs: serde_json::Value = if output.stdout.trim_ascii().is_empty() {
            serde_json::json!([])
        } else {
            serde_json::from_slice(&output.stdout)?
        };
        let ids = programs
            .as_array()
            .context("bpftool printed no list")?
            .iter();
        Ok(ids
            .filter_map(|program| u32::try_from(program.get("id")?.as_u64()?).ok())
            .collect())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = move_here(&self.root);
        // A killed child may take a moment to leave.
        for _ in 0..200 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

fn move_here(cgroup: &Path) -> Result<()> {
    let procs = cgroup.join("cgroup.procs");
    fs::write(&procs, std::process::id().to_string())
        .with_context(|| format!("cannot write {}", procs.display()))
}

/// Where the cgroup v2 hierarchy is mounted.
///
/// # Errors
/// When it is not.
pub fn root() -> Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let mut words = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    let found = words.find_map(|words| {
        (words.get(2) == Some(&"cgroup2")).then(|| words.get(1).map(PathBuf::from))?
    });
    found.context("no cgroup v2 hierarchy is mounted")
}
