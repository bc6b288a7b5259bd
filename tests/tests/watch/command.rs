//! Commands of `joinprobe run` that behave badly.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use joinprobe_lab::lab::{APISERVER_PORT, Finished, Running, binary};
use joinprobe_lab::{Lab, take_turn};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::lines::piped;

/// `joinprobe run` before a command; undecided is no failure.
const RUN: [&str; 3] = ["run", "--allow-inconclusive", "--"];

fn start(lab: &Lab, words: &[&str]) -> Result<Running> {
    lab.start_joinprobe(RUN.iter().chain(words).copied())
}

fn shell(lab: &Lab, script: &str) -> Result<Finished> {
    start(lab, &["bash", "-c", script])?.wait()
}

fn lab() -> Result<Lab> {
    Lab::builder().members(0).start()
}

#[test]
fn input_output_and_code_pass_through() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "bash"])? else {
        return Ok(());
    };
    let lab = lab()?;
    // Every byte, also those that are no text, and no end of line at the end.
    let input: Vec<u8> = (0..=255).cycle().take(1_000_001).collect();
    let mut command = Command::new(binary()?);
    piped(
        command
            .args(RUN)
            .args(["bash", "-c", "cat; echo gone >&2; exit 7"]),
    );
    let mut child = lab.joiner.namespace.spawn(command.stdin(Stdio::piped()))?;
    let mut pipe = child.stdin.take().context("no pipe")?;
    let sent = input.clone();
    let writer = std::thread::spawn(move || pipe.write_all(&sent));
    let output = child.wait_with_output()?;
    writer.join().ok().context("the writer panicked")??;
    assert!(output.stdout == input, "{} bytes came", output.stdout.len());
    assert_eq!(output.status.code(), Some(7));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(said.contains("gone\n"), "{said}");

    let killed = shell(&lab, "kill -9 $$")?;
    assert_eq!(killed.code, Some(128 + 9), "{killed:?}");
    let missing = start(&lab, &["no-such-command-at-all"])?.wait()?;
    assert_eq!(missing.code, Some(2), "{missing:?}");
    ensure!(
        missing.stderr.contains("`no-such-command-at-all`"),
        "{missing:?}"
    );
    Ok(())
}

#[test]
fn reports_begin_a_line_of_their_own_and_have_one_format() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "bash"])? else {
        return Ok(());
    };
    let lab = lab()?;
    let ended = shell(&lab, "printf unfinished >&2")?;
    ensure!(ended.stderr.contains("unfinished\n"), "{ended:?}");
    let ended = shell(&lab, "printf 'finished\\n' >&2")?;
    ensure!(!ended.stderr.contains("finished\n\n\n"), "{ended:?}");
    let address = lab.apiserver_node.at(APISERVER_PORT).to_string();
    let preflight = [
        "run",
        "--preflight",
        "--worker",
        "--allow-inconclusive",
        "-o",
        "json",
    ];
    let gated = ["--apiserver", &address, "--", "printf", "unfinished"];
    let ended = lab
        .start_joinprobe(preflight.iter().chain(&gated))?
        .wait()?;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let verdicts = ended
        .stderr
        .lines()
        .filter(|line| line.starts_with('{') && line.contains(r#""kind":"verdict""#))
        .count();
    assert_eq!(verdicts, 2, "{ended:?}");
    ensure!(!ended.stderr.contains("√"), "{ended:?}");
    Ok(())
}

#[test]
fn a_command_that_hangs_gets_the_signal() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "bash"])? else {
        return Ok(());
    };
    let lab = lab()?;
    for (signal, number) in [(Signal::TERM, 15), (Signal::INT, 2), (Signal::HUP, 1)] {
        let mut running = start(&lab, &["bash", "-c", "echo hangs; exec sleep 1000"])?;
        running.wait_until(|running| running.printed().contains("hangs"))?;
        running.signal(signal)?;
        let finished = running.wait()?;
        assert_eq!(finished.code, Some(128 + number), "{finished:?}");
        // The report is still made.
        ensure!(finished.stderr.contains("Verdict:"), "{finished:?}");
    }
    // One that catches the signal ends as it likes.
    let script = "trap 'echo caught; exit 9' USR1; echo set; while :; do sleep 0.05; done";
    let mut running = start(&lab, &["bash", "-c", script])?;
    running.wait_until(|running| running.printed().contains("set"))?;
    running.signal(Signal::USR1)?;
    let finished = running.wait()?;
    assert_eq!(
        (finished.code, &*finished.stdout),
        (Some(9), "set\ncaught\n")
    );
    Ok(())
}

#[test]
fn a_command_that_forks_away_is_not_waited_for() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "bash"])? else {
        return Ok(());
    };
    let lab = lab()?;
    let finished = shell(&lab, "sleep 50 & echo $!; exit 5")?;
    let pid: i32 = finished.stdout.trim().parse()?;
    let pid = Pid::from_raw(pid).context("no pid")?;
    let lives = test_kill_process(pid).is_ok();
    let _ = kill_process(pid, Signal::KILL);
    ensure!(lives, "what the command left behind was ended");
    assert_eq!(finished.code, Some(5), "{finished:?}");
    ensure!(finished.elapsed < Duration::from_secs(20), "{finished:?}");
    Ok(())
}

#[test]
fn a_command_that_closes_its_output_is_waited_for() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "bash"])? else {
        return Ok(());
    };
    let lab = lab()?;
    let began = Instant::now();
    let finished = shell(&lab, "echo first; exec >&- 2>&-; sleep 2; exit 3")?;
    ensure!(began.elapsed() >= Duration::from_secs(2), "{finished:?}");
    assert_eq!((finished.code, &*finished.stdout), (Some(3), "first\n"));
    Ok(())
}

#[test]
fn a_reader_that_goes_ends_the_command_as_it_would_without() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "bash"])? else {
        return Ok(());
    };
    let lab = lab()?;
    let script = format!(
        "{} run --allow-inconclusive -- bash -c 'while echo y; do :; done; exit 4' | head -2; echo ${{PIPESTATUS[0]}}",
        binary()?.display()
    );
    let mut command = Command::new("bash");
    piped(command.args(["-c", &script]));
    let finished = Running::spawn(&lab.joiner.namespace, &mut command)?.wait()?;
    // SIGPIPE, or the loop's own end where that is ignored.
    ensure!(
        ["y\ny\n141\n", "y\ny\n4\n"].contains(&&*finished.stdout),
        "{finished:?}"
    );
    Ok(())
}

#[test]
fn a_full_disk_loses_output_and_does_not_end_the_command() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "bash"])? else {
        return Ok(());
    };
    let lab = lab()?;
    // More than a pipe holds: who is not read from would never get to its end.
    let script = format!(
        "{} run --allow-inconclusive -- bash -c 'seq 1 100000; exit 4' > /dev/full; echo $?",
        binary()?.display()
    );
    let mut command = Command::new("bash");
    piped(command.args(["-c", &script]));
    let finished = Running::spawn(&lab.joiner.namespace, &mut command)?.wait()?;
    assert_eq!(finished.stdout, "4\n", "{finished:?}");
    let said = finished
        .stderr
        .matches("some of the command's output is lost");
    assert_eq!(said.count(), 1, "{finished:?}");
    Ok(())
}

#[test]
fn a_killed_joinprobe_leaves_the_command_running() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "bash"])? else {
        return Ok(());
    };
    let lab = lab()?;
    let done = lab.folder().join("done");
    let script = format!("echo $$; sleep 2; touch {}", done.display());
    let mut running = start(&lab, &["bash", "-c", &script])?;
    running.wait_until(|running| running.printed().contains('\n'))?;
    running.signal(Signal::KILL)?;
    let _ = running.wait()?;
    let began = Instant::now();
    while !done.exists() {
        ensure!(
            began.elapsed() < Duration::from_secs(15),
            "the command is gone too"
        );
        sleep(Duration::from_millis(50));
    }
    Ok(())
}
