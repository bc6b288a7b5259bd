//! What begins and ends a watch, and what its exit code says.

use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use joinprobe_lab::lab::{APISERVER_PORT, Running, binary};
use joinprobe_lab::{Lab, take_turn};
use rustix::process::Signal;

use crate::lines::{established_total, piped, verdict};

fn lab() -> Result<Lab> {
    Lab::builder().members(0).spare_nodes(1).start()
}

#[test]
fn the_file_the_time_and_both_signals_end_it() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe"])? else {
        return Ok(());
    };
    let lab = lab()?;
    let file = lab.folder().join("not-there-yet/complete");
    let until = format!("--until-file={}", file.display());

    let mut running = lab.start_joinprobe(["watch", "-ojson", "-v", &until])?;
    running.wait_ready()?;
    std::fs::create_dir(lab.folder().join("not-there-yet"))?;
    std::fs::write(&file, "")?;
    let began = Instant::now();
    let finished = running.wait()?;
    ensure!(finished.code == Some(0), "{finished:?}");
    ensure!(finished.stderr.contains("is there"), "{finished:?}");
    ensure!(began.elapsed() < Duration::from_secs(10));
    verdict(&finished.stdout)?;

    // It is there already.
    let finished = lab.run_joinprobe(["watch", "-ojson", &until])?;
    ensure!(finished.code == Some(0), "{finished:?}");
    std::fs::remove_file(&file)?;

    for limit in ["--duration=1500ms", "--max-duration=1500ms"] {
        let mut running = lab.start_joinprobe(["watch", "-ojson", "-v", &until, limit])?;
        running.wait_ready()?;
        let began = Instant::now();
        let finished = running.wait()?;
        ensure!(began.elapsed() > Duration::from_secs(1), "{finished:?}");
        ensure!(finished.code == Some(0), "{finished:?}");
        ensure!(finished.stderr.contains("the time is over"), "{finished:?}");
    }
    for signal in [Signal::INT, Signal::TERM] {
        let mut running = lab.start_joinprobe(["watch", "-ojson", &until])?;
        running.wait_ready()?;
        running.signal(signal)?;
        let finished = running.wait()?;
        ensure!(finished.code == Some(0), "{finished:?}");
        verdict(&finished.stdout)?;
    }
    Ok(())
}

#[test]
fn the_verdict_is_the_exit_code_where_that_is_asked_for() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe"])? else {
        return Ok(());
    };
    let lab = lab()?;
    for (more, code) in [
        (&["--fail-on-verdict"][..], 5),
        (&["--fail-on-verdict", "--allow-inconclusive"], 0),
        (&[], 0),
    ] {
        let args = ["watch", "--duration=1s"];
        let finished = lab.run_joinprobe(args.iter().chain(more).copied())?;
        assert_eq!(finished.code, Some(code), "{more:?}: {finished:?}");
    }
    Ok(())
}

#[test]
fn systemd_is_told_when_it_measures() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe"])? else {
        return Ok(());
    };
    let lab = lab()?;
    let path = lab.folder().join("notify");
    let socket = UnixDatagram::bind(&path)?;
    socket.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut command = Command::new(binary()?);
    piped(
        command
            .args(["watch", "-ojson"])
            .env("NOTIFY_SOCKET", &path),
    );
    let running = Running::spawn(&lab.joiner.namespace, &mut command)?;
    let mut buffer = [0; 256];
    let length = socket.recv(&mut buffer)?;
    let told = String::from_utf8_lossy(&buffer[..length]).into_owned();
    ensure!(told.lines().any(|line| line == "READY=1"), "{told}");
    // Whatever happens from then on is measured.
    let server = lab.apiserver_node.at(APISERVER_PORT);
    lab.joiner
        .namespace
        .enter(|| TcpStream::connect(server))??;
    running.signal(Signal::TERM)?;
    let finished = running.wait()?;
    assert_eq!(established_total(&verdict(&finished.stdout)?), 1);
    let length = socket.recv(&mut buffer)?;
    assert_eq!(&buffer[..length], b"STOPPING=1");
    Ok(())
}

#[test]
fn other_namespaces_are_seen_only_when_asked_for() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe"])? else {
        return Ok(());
    };
    let lab = lab()?;
    let pod = &lab.spare_nodes[0].namespace;
    let listener = pod.enter(|| TcpListener::bind("127.0.0.1:2379"))??;
    for (more, expected) in [(&[][..], 0), (&["--all-namespaces"], 5)] {
        let args = ["watch", "-ojson"];
        let mut running = lab.start_joinprobe(args.iter().chain(more).copied())?;
        running.wait_ready()?;
        pod.enter(|| -> Result<()> {
            for _ in 0..5 {
                TcpStream::connect("127.0.0.1:2379")?;
                listener.accept()?;
            }
            Ok(())
        })??;
        sleep(Duration::from_millis(200));
        running.signal(Signal::TERM)?;
        let finished = running.wait()?;
        // Others on this machine may use the port too, in namespaces of their own.
        let counted = established_total(&verdict(&finished.stdout)?);
        ensure!(
            counted == expected || (expected > 0 && counted > expected),
            "{more:?}: {finished:?}"
        );
    }
    Ok(())
}
