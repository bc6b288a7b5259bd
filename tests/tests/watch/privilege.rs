//! What joinprobe may still do once it is attached, and what the command of a run may.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use joinprobe_lab::lab::{Running, binary};
use joinprobe_lab::{Lab, take_turn};
use rustix::process::Signal;

use crate::lines::{established_total, piped, verdict};

const NONE: &str = "0000000000000000";
/// `CAP_KILL` is bit 5.
const KILL: &str = "0000000000000020";
/// Long enough for joinprobe to have dropped its own.
const SHOW: &str =
    "sleep 1; grep ^Cap /proc/self/status; cat /proc/$PPID/task/*/status | grep ^Cap";

#[test]
fn a_watch_keeps_none_and_goes_on_counting() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "bash"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(0).start()?;
    let mut running = lab.start_joinprobe(["watch", "-ojson", "--interval=1s"])?;
    running.wait_ready()?;
    let threads = of_threads(running.pid())?;
    for set in ["CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd"] {
        assert_eq!(
            values(&threads, set),
            BTreeSet::from([NONE.into()]),
            "{set}"
        );
    }
    connect(&lab, 7)?;
    running.signal(Signal::TERM)?;
    let finished = running.wait()?;
    ensure!(finished.code == Some(0), "{finished:?}");
    assert_eq!(established_total(&verdict(&finished.stdout)?), 7);
    assert!(!finished.stderr.contains("dropped"), "{finished:?}");
    Ok(())
}

#[test]
fn files_can_still_be_written_by_root() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(0).start()?;
    let place = lab.folder().join("of-somebody-else");
    std::fs::create_dir(&place)?;
    std::os::unix::fs::chown(&place, Some(65534), Some(65534))?;
    std::fs::set_permissions(&place, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    let textfile = place.join("x.prom");
    let hlog = place.join("x.hlog");
    let finished = lab.run_joinprobe([
        "watch".into(),
        "--duration=3s".into(),
        "--interval=1s".into(),
        "--textfile".into(),
        textfile.clone().into_os_string(),
        "--hlog".into(),
        hlog.clone().into_os_string(),
    ])?;
    ensure!(finished.code == Some(0), "{finished:?}");
    ensure!(textfile.is_file() && hlog.is_file(), "{finished:?}");
    assert!(!finished.stderr.contains("error"), "{finished:?}");
    Ok(())
}

#[test]
fn the_command_of_a_run_keeps_what_it_was_given() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "bash", "setpriv"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(0).start()?;
    let root: &[&str] = &[];
    let caps = "-all,+bpf,+net_admin,+net_raw";
    let other: &[&str] = &[
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--inh-caps",
        caps,
        "--ambient-caps",
        caps,
        "--bounding-set",
        caps,
    ];
    for before in [root, other] {
        let plain = capabilities_of(&lab, before, &["bash", "-c", "grep ^Cap /proc/self/status"])?;
        let binary = binary()?;
        let binary = binary.to_str().context("the binary's path is no text")?;
        let run = [
            binary,
            "run",
            "--allow-inconclusive",
            "--",
            "bash",
            "-c",
            SHOW,
        ];
        let shown = capabilities_of(&lab, before, &run)?;
        ensure!(shown.len() >= 2 * plain.len(), "{shown:?}");
        let (command, joinprobe) = shown.split_at(plain.len());
        assert_eq!(command, plain, "{before:?}");
        let kept = values(joinprobe, "CapEff");
        let kill = if before.is_empty() { KILL } else { NONE };
        // The main thread's, and those of the threads that only pass output on.
        assert_eq!(
            kept,
            BTreeSet::from([kill.into(), NONE.into()]),
            "{before:?}"
        );
        assert_eq!(values(joinprobe, "CapPrm"), kept);
        assert_eq!(values(joinprobe, "CapAmb"), BTreeSet::from([NONE.into()]));
    }
    Ok(())
}

/// The `Cap…` lines that a command prints when started behind `before`.
fn capabilities_of(lab: &Lab, before: &[&str], words: &[&str]) -> Result<Vec<String>> {
    let words: Vec<&str> = before.iter().chain(words).copied().collect();
    let (program, args) = words.split_first().context("no command")?;
    let mut command = Command::new(program);
    piped(command.args(args));
    let finished = Running::spawn(&lab.joiner.namespace, &mut command)?.wait()?;
    ensure!(finished.code == Some(0), "{finished:?}");
    Ok(finished.stdout.lines().map(str::to_owned).collect())
}

fn of_threads(pid: u32) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let status = std::fs::read_to_string(thread?.path().join("status"))?;
        lines.extend(status.lines().map(str::to_owned));
    }
    Ok(lines)
}

fn values(lines: &[String], set: &str) -> BTreeSet<String> {
    lines
        .iter()
        .filter_map(|line| line.strip_prefix(set)?.strip_prefix(":\t"))
        .map(str::to_owned)
        .collect()
}

fn connect(lab: &Lab, times: u32) -> Result<()> {
    let address = lab.apiserver_node.at(joinprobe_lab::lab::APISERVER_PORT);
    lab.joiner.namespace.enter(|| -> Result<()> {
        for _ in 0..times {
            std::net::TcpStream::connect(address)?;
        }
        Ok(())
    })?
}
