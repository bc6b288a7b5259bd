//! All the time that the machine spends for a tool, found by looking at what every processor does every 0.1 ms.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use joinprobe_lab::programs::locate;
use joinprobe_lab::{Namespace, scratch_dir};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::super::Bench;
use super::super::figure::Figure;
use super::super::load::Server;
use super::super::measured::Measured;
use super::{SAMPLES, bpftrace, load, order};

/// Time between two looks.
const PERIOD: Duration = Duration::from_micros(100);

/// Starts a tool.
type Start = fn(&Bench, &Namespace) -> Result<Measured>;

/// What is looked at: a tool, and the kernel function under which all that is done for it happens. For joinprobe the few
/// instructions that fill in the callback's arguments are missing, since the compiler has put them into its caller.
const TOOLS: [(&str, Start, &str); 3] = [
    ("joinprobe watch", watch, "__cgroup_bpf_run_filter_sock_ops"),
    (
        "bpftrace, one histogram",
        bpftrace::start_one_histogram,
        "perf_trace_tcp_probe",
    ),
    (
        "bpftrace, by address and port",
        bpftrace::start_by_address,
        "perf_trace_tcp_probe",
    ),
];

pub(super) fn measure(bench: &Bench, namespace: &Namespace, echo: &Server) -> Result<Vec<Figure>> {
    let mut nanoseconds: Vec<Vec<f64>> = TOOLS.iter().map(|_| Vec::new()).collect();
    for round in 0..bench.rounds {
        for tool in order(round, TOOLS.len()) {
            let (name, start, function) = TOOLS[tool];
            let running = start(bench, namespace)?;
            let before = running.used()?.cpu;
            let profile = Profile::start()?;
            load(namespace, echo)?;
            let kernel = profile.seconds_under(function).context(name)?;
            let own = running.used()?.cpu - before;
            running.stop()?;
            nanoseconds[tool].push((kernel + own) * 1e9 / SAMPLES);
        }
    }
    let mut figures: Vec<Figure> = TOOLS
        .iter()
        .zip(&nanoseconds)
        .map(|((name, ..), rounds)| {
            Figure::new(format!("{name}: all CPU per sample"), "ns", rounds.clone())
        })
        .collect();
    for (tool, goal) in [(1, true), (2, false)] {
        let rounds = nanoseconds[tool].iter().zip(&nanoseconds[0]);
        let ratio = Figure::new(
            format!("all CPU per sample, {} / joinprobe", TOOLS[tool].0),
            "",
            rounds.map(|(theirs, ours)| theirs / ours).collect(),
        );
        figures.push(if goal { ratio.at_least(2.5) } else { ratio });
    }
    Ok(figures)
}

fn watch(bench: &Bench, namespace: &Namespace) -> Result<Measured> {
    Measured::watch(namespace, &bench.joinprobe, &[])
}

/// A running `perf record` of all processors.
struct Profile {
    perf: Child,
    folder: TempDir,
}

impl Profile {
    fn start() -> Result<Self> {
        let folder = scratch_dir()?;
        let perf = Command::new(locate("perf").context("no perf")?)
            .args(["record", "--quiet", "--all-cpus", "--event", "cpu-clock"])
            .args(["--count", &PERIOD.as_nanos().to_string(), "-g", "--output"])
            .arg(data(folder.path()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let profile = Self { perf, folder };
        let start = Instant::now();
        // It writes its file's header before it begins.
        while fs::metadata(data(profile.folder.path())).map_or(0, |data| data.len()) == 0 {
            ensure!(
                start.elapsed() < Duration::from_secs(10),
                "perf does not start"
            );
            sleep(Duration::from_millis(10));
        }
        sleep(Duration::from_millis(500));
        Ok(profile)
    }

    /// Ends it and adds up the time in which `function` was called by what a processor was doing, or was it.
    fn seconds_under(mut self, function: &str) -> Result<f64> {
        let pid = Pid::from_raw(i32::try_from(self.perf.id())?).context("no pid")?;
        kill_process(pid, Signal::INT)?;
        self.perf.wait()?;
        let output = Command::new(locate("perf").context("no perf")?)
            .args(["script", "--fields", "ip,sym", "--no-inline", "--input"])
            .arg(data(self.folder.path()))
            .stdin(Stdio::null())
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let looks = stacks_with(&text, function);
        ensure!(
            looks > 0,
            "{function} was never seen; is kernel.kptr_restrict set?"
        );
        Ok((PERIOD * looks).as_secs_f64())
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        let _ = self.perf.kill();
        let _ = self.perf.wait();
    }
}

fn data(folder: &Path) -> PathBuf {
    folder.join("perf.data")
}

/// Counts the call chains (blocks of lines, each an address and a name) that a function is in.
fn stacks_with(text: &str, function: &str) -> u32 {
    let mut count = 0;
    let mut seen = false;
    for line in text.lines() {
        let name = line.split_whitespace().nth(1);
        if name.is_none() {
            seen = false;
        } else if !seen && name == Some(function) {
            seen = true;
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_chain_counts_once() {
        let text = "\n ff a\n fe hook\n fd hook\n\n\n ff hook\n\n ff hooks\n fe b\n";
        assert_eq!(stacks_with(text, "hook"), 2);
        assert_eq!(stacks_with("", "hook"), 0);
    }
}
