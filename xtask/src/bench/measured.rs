//! A process whose cost is measured.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use joinprobe_lab::Namespace;
use joinprobe_lab::bpf::{BpfObjects, Cgroup, RunStats};
use rustix::process::{Pid, Signal, kill_process};

/// A started program. Dropping it kills it.
pub(super) struct Measured {
    process: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
    /// From its start until it said that it is ready.
    pub(super) ready_after: Duration,
}

/// What a process used so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    /// Seconds on a processor, in its own threads.
    pub(super) cpu: f64,
    /// Of its BPF programs.
    pub(super) programs: RunStats,
}

impl Used {
    /// What was used since an earlier moment.
    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            cpu: self.cpu - earlier.cpu,
            programs: self.programs.since(earlier.programs),
        }
    }

    /// Seconds on a processor, in the process and in the kernel on its behalf.
    pub(super) fn seconds(self) -> f64 {
        self.cpu + self.programs.seconds()
    }
}

impl Measured {
    /// Starts a program in a namespace; nobody reads its stderr yet.
    fn spawn(namespace: &Namespace, program: &Path, args: &[&str]) -> Result<(Self, ChildStderr)> {
        let mut command = Command::new(program);
        command
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = namespace.spawn(&mut command)?;
        let stdout = process.stdout.take().context("no stdout")?;
        let stderr = process.stderr.take().context("no stderr")?;
        let measured = Self {
            process,
            stdout: Some(thread::spawn(move || read_all(stdout))),
            stderr: None,
            ready_after: Duration::ZERO,
        };
        Ok((measured, stderr))
    }

    /// Starts a program in a namespace and waits until a line of its stderr (`ready`) says that it works.
    pub(super) fn start(
        namespace: &Namespace,
        program: &Path,
        args: &[&str],
        ready: &str,
    ) -> Result<Self> {
        let start = Instant::now();
        let (mut measured, stderr) = Self::spawn(namespace, program, args)?;
        let mut stderr = BufReader::new(stderr);
        let mut said = String::new();
        loop {
            let before = said.len();
            if stderr.read_line(&mut said)? == 0 {
                bail!("{} ended: {said}", program.display());
            }
            if said.get(before..).is_some_and(|line| line.contains(ready)) {
                break;
            }
        }
        measured.ready_after = start.elapsed();
        measured.stderr = Some(thread::spawn(move || read_all(stderr)));
        Ok(measured)
    }

    /// Starts a program that does not say when it works, and waits until its BPF programs are loaded and linked.
    pub(super) fn start_loading(
        namespace: &Namespace,
        program: &Path,
        args: &[&str],
    ) -> Result<Self> {
        let start = Instant::now();
        let (mut measured, stderr) = Self::spawn(namespace, program, args)?;
        measured.stderr = Some(thread::spawn(move || read_all(stderr)));
        let mut loaded = 0;
        loop {
            // Those that are loaded and not linked yet come within milliseconds.
            thread::sleep(Duration::from_millis(500));
            if measured.process.try_wait()?.is_some() {
                let stderr = measured.stderr.take().context("no stderr")?;
                let said = stderr.join().map_err(|_| anyhow!("its reader died"))?;
                bail!("{} ended: {said}", program.display());
            }
            let now = BpfObjects::of(measured.pid())?.programs.len();
            if now > 0 && now == loaded {
                measured.ready_after = start.elapsed();
                return Ok(measured);
            }
            loaded = now;
            ensure!(
                start.elapsed() < Duration::from_mins(1),
                "{} loads no program",
                program.display()
            );
        }
    }

    /// `joinprobe watch` in a namespace, attached.
    pub(super) fn watch(namespace: &Namespace, joinprobe: &Path, args: &[&str]) -> Result<Self> {
        let all = [&["watch", "-o", "json"], args].concat();
        Self::start(namespace, joinprobe, &all, "ready")
    }

    /// The same, attached to a cgroup of this program's own: what else the host does is not seen.
    pub(super) fn watch_cgroup(
        namespace: &Namespace,
        joinprobe: &Path,
        cgroup: &Cgroup,
    ) -> Result<Self> {
        let path = cgroup.path().to_str().context("not a cgroup of ours")?;
        Self::watch(namespace, joinprobe, &["--cgroup", path])
    }

    /// Its process id.
    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// What it used so far.
    pub(super) fn used(&self) -> Result<Used> {
        let mut programs = RunStats::default();
        for program in BpfObjects::of(self.pid())?.programs {
            programs = programs.and(RunStats::of(program)?);
        }
        Ok(Used {
            cpu: cpu_seconds(self.pid())?,
            programs,
        })
    }

    /// A line of `/proc/PID/status` in KiB, for example `VmRSS`.
    pub(super) fn status_kib(&self, key: &str) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let value = status.lines().find_map(|line| {
            let rest = line.strip_prefix(key)?.strip_prefix(':')?;
            rest.trim().strip_suffix(" kB")?.parse().ok()
        });
        value.with_context(|| format!("no {key}"))
    }

    /// Asks it to end and returns what it printed, and what it said on stderr since it was ready.
    pub(super) fn stop(mut self) -> Result<(String, String)> {
        let pid = i32::try_from(self.pid())?;
        let pid = Pid::from_raw(pid).context("no pid")?;
        kill_process(pid, Signal::INT)?;
        let start = Instant::now();
        while self.process.try_wait()?.is_none() {
            ensure!(start.elapsed() < Duration::from_secs(30), "it does not end");
            thread::sleep(Duration::from_millis(5));
        }
        let joined = |reader: Option<JoinHandle<String>>| {
            let reader = reader.context("it never was ready")?;
            reader.join().map_err(|_| anyhow!("its reader died"))
        };
        Ok((joined(self.stdout.take())?, joined(self.stderr.take())?))
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Seconds that a process's threads were on a processor (`/proc/PID/task/TID/schedstat`, in nanoseconds).
fn cpu_seconds(pid: u32) -> Result<f64> {
    let mut total = Duration::ZERO;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        let first = text.split(' ').next().unwrap_or_default();
        total += Duration::from_nanos(first.parse().context("no schedstat")?);
    }
    Ok(total.as_secs_f64())
}

fn read_all(mut pipe: impl Read) -> String {
    let mut bytes = Vec::new();
    let _ = pipe.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The last line of joinprobe's JSON: the verdict.
pub(super) fn verdict(output: &str) -> Result<serde_json::Value> {
    let last = output.lines().last().context("joinprobe printed nothing")?;
    serde_json::from_str(last).context("joinprobe printed no JSON")
}

/// Sums a number over all targets of a verdict, by its JSON pointer, on one side.
pub(super) fn sum(verdict: &serde_json::Value, side: &str, pointer: &str) -> u64 {
    let targets = verdict["targets"].as_array().into_iter().flatten();
    targets
        .filter(|target| target["side"] == side)
        .filter_map(|target| target.pointer(pointer)?.as_u64())
        .sum()
}
