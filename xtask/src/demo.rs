//! `cargo xtask demo`: joinprobe in a lab, before a join.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use joinprobe_lab::{Impairment, Lab};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::packages::{self, LAB};
use crate::privilege::{as_root, has_sudo, is_root};
use crate::workspace::{joinprobe, say};

/// Runs `joinprobe preflight` against a real three-member etcd cluster and an API server behind a slow link.
///
/// Its output is joinprobe's, its exit code too. Needs root or sudo, and on Debian and Ubuntu installs what is
/// missing.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Round-trip time between the joining node and the cluster.
    #[arg(long, default_value = "10ms", value_parser = humantime::parse_duration)]
    rtt: Duration,
    /// How much the round-trip time varies, up and down.
    #[arg(long, default_value = "0ms", value_parser = humantime::parse_duration)]
    jitter: Duration,
    /// Share of packets lost in each direction, as `5%` or `0.05`.
    #[arg(long, default_value = "0%", value_parser = share)]
    loss: f64,
    /// Seed of the random choices: the same seed loses the same packets.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Further arguments for joinprobe.
    #[arg(last = true)]
    joinprobe: Vec<OsString>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    packages::ensure_present(&[LAB])?;
    let binary = joinprobe()?;
    if !is_root() {
        return again_as_root(&binary);
    }
    let signal = Arc::new(AtomicUsize::new(0));
    for number in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_usize(number, Arc::clone(&signal), usize::try_from(number)?)?;
    }
    let behind = Impairment::half_of_rtt(args.rtt)
        .with_jitter(args.jitter / 2)
        .with_loss(args.loss);
    let members = 3;
    say(&format!(
        "bringing up {members} etcd members and an API server behind {}",
        describe(args)
    ));
    let lab = Lab::builder()
        .members(members)
        .shape(behind)
        .seed(args.seed)
        .start()?;
    let child = if signal.load(Ordering::Relaxed) == 0 {
        let mut command = Command::new(&binary);
        // In a group of its own: Ctrl-C reaches it once, handed on by `wait`.
        command
            .args(lab.preflight_args())
            .args(&args.joinprobe)
            .process_group(0);
        Some(lab.joiner.namespace.spawn(&mut command)?)
    } else {
        None
    };
    let status = child.map(|child| wait(child, &signal)).transpose()?;
    drop(lab);
    Ok(ExitCode::from(status.map_or(1, code)))
}

/// Waits for joinprobe, handing on signals meant for both.
fn wait(mut child: Child, signal: &AtomicUsize) -> Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let number = i32::try_from(signal.swap(0, Ordering::Relaxed)).ok();
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        if let (Some(pid), Some(signal)) = (pid, number.and_then(Signal::from_named_raw)) {
            let _ = kill_process(pid, signal);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn code(status: ExitStatus) -> u8 {
    // As a shell reports it.
    let number = status
        .code()
        .or_else(|| Some(128 + status.signal()?))
        .unwrap_or(1);
    u8::try_from(number).unwrap_or(1)
}

/// Starts the same task under sudo, with the binary that was just built.
fn again_as_root(binary: &Path) -> Result<ExitCode> {
    ensure!(
        has_sudo(),
        "the lab needs root: run this as root or with sudo"
    );
    let path = packages::path()?;
    let words = as_root(&[
        ("PATH", path.as_os_str()),
        ("JOINPROBE_BIN", binary.as_os_str()),
    ]);
    let (program, prefix) = words.split_first().context("no sudo")?;
    let own = std::env::current_exe()?;
    let error = Command::new(program)
        .args(prefix)
        .arg(own)
        .args(std::env::args_os().skip(1))
        .exec();
    Err(error).context("cannot start sudo")
}

fn describe(args: &Args) -> String {
    let rtt = humantime::format_duration(args.rtt);
    let jitter = humantime::format_duration(args.jitter);
    format!(
        "a round-trip time of {rtt} ± {jitter}, losing {} % of packets each way",
        args.loss * 100.0
    )
}

fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = text
        .strip_suffix('%')
        .map_or((text, 1.0), |percent| (percent, 100.0));
    match number.trim().parse::<f64>() {
        Ok(value) if (0.0..=scale).contains(&value) => Ok(value / scale),
        _ => Err(format!("{text:?} is no share: write 5% or 0.05")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        assert_eq!(share("5%"), Ok(0.05));
        assert_eq!(share("0.05"), Ok(0.05));
        assert_eq!(share("0"), Ok(0.0));
        for bad in ["", "%", "5", "101%", "-1%", "nan", "five"] {
            assert!(share(bad).is_err(), "{bad}");
        }
    }
}
