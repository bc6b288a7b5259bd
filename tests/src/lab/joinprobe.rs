//! Running the binary under test.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::netns::Namespace;
use crate::report::Report;
use crate::schema;

/// Longer than any run that is not stuck.
const PATIENCE: Duration = Duration::from_mins(1);

/// A started joinprobe. Dropping it kills it.
#[derive(Debug)]
pub struct Running {
    process: Child,
    started: Instant,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
}

/// How a run ended and what it printed.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// From start to end.
    pub elapsed: Duration,
}

impl Running {
    /// Starts a program in a namespace, its output kept.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(
        namespace: &Namespace,
        program: &Path,
        args: impl IntoIterator<Item = OsString>,
    ) -> Result<Self> {
        let mut command = Command::new(program);
        command
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started = Instant::now();
        let mut process = namespace.spawn(&mut command)?;
        let stdout = process
            .stdout
            .take()
            .map(|pipe| thread::spawn(move || read_all(pipe)));
        let stderr = process
            .stderr
            .take()
            .map(|pipe| thread::spawn(move || read_all(pipe)));
        Ok(Self {
            process,
            started,
            stdout,
            stderr,
        })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// When it is gone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.process.id())
            .ok()
            .and_then(Pid::from_raw)
            .context("no such pid")?;
        kill_process(pid, signal).context("cannot send a signal")
    }

    /// Waits for its end, and holds every JSON line it wrote against the published schema: no test can do without.
    ///
    /// # Errors
    /// When it takes longer than a minute (it is killed then), or wrote JSON that is none of the schema.
    pub fn wait(mut self) -> Result<Finished> {
        let status = loop {
            if let Some(status) = self.process.try_wait()? {
                break status;
            }
            if self.started.elapsed() > PATIENCE {
                let _ = self.process.kill();
                let _ = self.process.wait();
                bail!(
                    "it did not end within {PATIENCE:?}; it said: {}",
                    joined(self.stderr.take())
                );
            }
            thread::sleep(Duration::from_millis(1));
        };
        let finished = Finished {
            code: status.code(),
            elapsed: self.started.elapsed(),
            stdout: joined(self.stdout.take()),
            stderr: joined(self.stderr.take()),
        };
        // What a signal ends may end in the middle of a line.
        let whole = finished.code.is_some();
        for text in [&finished.stdout, &finished.stderr] {
            schema::check_any(text, whole).with_context(|| format!("{finished:?}"))?;
        }
        Ok(finished)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Finished {
    /// Its standard output as a report; that it is one of the published schema was seen to when it ended.
    ///
    /// # Errors
    /// When it is no JSON, with both outputs.
    pub fn report(&self) -> Result<Report> {
        let parsed = serde_json::from_str(&self.stdout);
        let parsed = parsed.map_err(|error| anyhow!("no JSON ({error}): {self:?}"))?;
        Ok(Report(parsed))
    }
}

fn read_all(mut pipe: impl Read) -> String {
    let mut bytes = Vec::new();
    let _ = pipe.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn joined(reader: Option<JoinHandle<String>>) -> String {
    reader
        .and_then(|reader| reader.join().ok())
        .unwrap_or_default()
}

/// The joinprobe to test: `JOINPROBE_BIN` if set, as `cargo xtask test` does; otherwise it is built here, so that a
/// test never runs a stale one.
///
/// # Errors
/// When it cannot be built.
pub fn binary() -> Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    if let Some(path) = std::env::var_os("JOINPROBE_BIN") {
        let path = PathBuf::from(path);
        ensure!(
            path.is_file(),
            "JOINPROBE_BIN names {}, which is no file",
            path.display()
        );
        return Ok(path);
    }
    let built = BUILT.get_or_init(|| build().map_err(|error| format!("{error:#}")));
    built.clone().map_err(|error| anyhow!(error))
}

fn build() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args([
            "build",
            "--quiet",
            "--package",
            "probe-user",
            "--bin",
            "joinprobe",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .context("cannot start cargo")?;
    ensure!(
        status.success(),
        "joinprobe does not build (set JOINPROBE_BIN to use another)"
    );
    let own = std::env::current_exe()?;
    let mut folders = own.ancestors().map(|folder| folder.join("joinprobe"));
    folders
        .find(|path| path.is_file())
        .context("the built joinprobe is not where cargo puts it")
}
