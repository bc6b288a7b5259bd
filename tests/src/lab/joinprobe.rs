//! Running the binary under test.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
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
    stdout: Output,
    stderr: Output,
}

/// What a process has written so far; nothing where it was given another place to write to.
#[derive(Debug, Default)]
struct Output {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
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
        Self::spawn(namespace, &mut command)
    }

    /// Starts a command in a namespace. Those of its outputs that are pipes are kept.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(namespace: &Namespace, command: &mut Command) -> Result<Self> {
        let started = Instant::now();
        let mut process = namespace.spawn(command)?;
        let stdout = process.stdout.take().map(Output::of).unwrap_or_default();
        let stderr = process.stderr.take().map(Output::of).unwrap_or_default();
        Ok(Self {
            process,
            started,
            stdout,
            stderr,
        })
    }

    /// What it has written to standard output so far.
    #[must_use]
    pub fn printed(&self) -> String {
        self.stdout.so_far()
    }

    /// What it has written to standard error so far.
    #[must_use]
    pub fn said(&self) -> String {
        self.stderr.so_far()
    }

    /// Waits until a condition on it holds.
    ///
    /// # Errors
    /// When it ends first or the condition does not hold within half a minute; with what it said.
    pub fn wait_until(&mut self, condition: impl Fn(&Self) -> bool) -> Result<()> {
        let began = Instant::now();
        while !condition(self) {
            let ended = self.process.try_wait()?;
            ensure!(
                ended.is_none() && began.elapsed() < PATIENCE / 2,
                "what was waited for did not come ({ended:?}): {}{}",
                self.printed(),
                self.said()
            );
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Waits until a `joinprobe watch` measures.
    ///
    /// # Errors
    /// As [`Running::wait_until`].
    pub fn wait_ready(&mut self) -> Result<()> {
        self.wait_until(|running| running.said().contains("joinprobe: ready\n"))
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
        let waiting = Instant::now();
        let status = loop {
            if let Some(status) = self.process.try_wait()? {
                break status;
            }
            if waiting.elapsed() > PATIENCE {
                let _ = self.process.kill();
                let _ = self.process.wait();
                bail!(
                    "it did not end within {PATIENCE:?}; it said: {}",
                    self.said()
                );
            }
            thread::sleep(Duration::from_millis(1));
        };
        let finished = Finished {
            code: status.code(),
            elapsed: self.started.elapsed(),
            stdout: self.stdout.whole(),
            stderr: self.stderr.whole(),
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

impl Output {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bytes);
        let reader = thread::spawn(move || {
            let mut chunk = [0; 16_384];
            while let Ok(length @ 1..) = pipe.read(&mut chunk) {
                kept.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend(chunk.iter().take(length));
            }
        });
        Self {
            bytes,
            reader: Some(reader),
        }
    }

    fn so_far(&self) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Everything, once nobody can write any more.
    fn whole(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        self.so_far()
    }
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
