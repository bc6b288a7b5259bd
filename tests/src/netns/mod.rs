//! Network namespaces that clean up after themselves.

mod sweep;

use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::sync::Once;
use std::thread;

use anyhow::{Context, Result, anyhow, bail, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::programs::command;
use crate::unique;

static SWEEP: Once = Once::new();

/// A network namespace made by `ip netns add`, with its loopback up. Dropping it removes it.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes a namespace with a name of its own. The first call of a process also removes what dead processes left.
    ///
    /// # Errors
    /// When not allowed (root is needed) or when iproute2 is missing.
    pub fn create() -> Result<Self> {
        SWEEP.call_once(sweep::remove_orphans);
        let name = unique::name();
        run(command("ip").args(["netns", "add", &name]))
            .context("cannot make a network namespace (the lab needs root and iproute2)")?;
        let namespace = Self { name };
        namespace.ip("link set lo up")?;
        Ok(namespace)
    }

    /// Its name, as `ip netns list` shows it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file to open for `setns`.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from("/run/netns").join(&self.name)
    }

    /// Runs `work` on a thread that lives in this namespace. Sockets opened there stay in it, wherever they are used
    /// later, and so do processes started there.
    ///
    /// # Errors
    /// When the namespace cannot be entered.
    ///
    /// # Panics
    /// When `work` does.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let file = File::open(self.path())
            .with_context(|| format!("cannot open namespace {}", self.name))?;
        thread::scope(|scope| {
            let worker = scope.spawn(move || {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                    .map(|()| work())
                    .with_context(|| format!("cannot enter namespace {}", self.name))
            });
            worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Starts a program in the namespace. Unlike under `ip netns exec`, its mounts are those of the caller (so
    /// `/sys/fs/cgroup` is there), and the child's pid is the program's own.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn spawn(&self, command: &mut Command) -> Result<Child> {
        let program = command.get_program().to_string_lossy().into_owned();
        self.enter(|| command.spawn())?
            .with_context(|| format!("cannot start {program}"))
    }

    /// Runs a program in the namespace to its end and returns what it printed.
    ///
    /// # Errors
    /// When the program cannot be started. Its own failure is in the output.
    pub fn output(&self, command: &mut Command) -> Result<Output> {
        let program = command.get_program().to_string_lossy().into_owned();
        self.enter(|| command.output())?
            .with_context(|| format!("cannot start {program}"))
    }

    /// Runs `ip` with these words in the namespace.
    ///
    /// # Errors
    /// When it fails, with what it said.
    pub fn ip(&self, words: &str) -> Result<()> {
        run(command("ip")
            .args(["-n", &self.name])
            .args(words.split_whitespace()))
    }

    /// Sets one of the namespace's own `net.` settings, for example `net.ipv4.tcp_timestamps`.
    ///
    /// # Errors
    /// When there is no such setting or the value is refused.
    pub fn sysctl(&self, key: &str, value: &str) -> Result<()> {
        ensure!(
            key.starts_with("net."),
            "{key} is not a setting of a network namespace"
        );
        let path = PathBuf::from("/proc/sys").join(key.replace('.', "/"));
        self.enter(|| std::fs::write(&path, value))?
            .with_context(|| format!("cannot set {key} to {value}"))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Nothing more can be done about a failure here; the next process sweeps.
        let _ = run(command("ip").args(["netns", "del", &self.name]));
    }
}

/// Runs a command to its end; a failure carries what it wrote to stderr.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .map_err(|error| anyhow!("cannot start {command:?}: {error}"))?;
    if !output.status.success() {
        bail!(
            "{command:?} failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}
