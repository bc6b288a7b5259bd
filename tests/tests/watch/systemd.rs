//! The unit: systemd accepts it, and what it allows is enough. No test starts it: not every machine runs systemd.

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use joinprobe_lab::lab::{APISERVER_PORT, Running, binary};
use joinprobe_lab::programs::command;
use joinprobe_lab::{Lab, can_run, take_turn};
use rustix::process::Signal;

use crate::lines::{established_total, piped, verdict};

const UNIT: &str = "joinprobe-watch.service";
/// `systemd-analyze security` counts from 0, safe, to 10.
const WORST_EXPOSURE: &str = "40";

fn unit() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.join("../docs/systemd").join(UNIT)
}

#[test]
fn systemd_accepts_the_unit_and_finds_it_little_exposed() -> Result<()> {
    if !can_run(&["systemd-analyze"])? {
        return Ok(());
    }
    let folder = joinprobe_lab::scratch_dir()?;
    // `verify` wants the program where the unit says it is.
    let text = std::fs::read_to_string(unit())?;
    ensure!(text.contains("ExecStart=/usr/local/bin/joinprobe watch"));
    let text = text.replace("/usr/local/bin/joinprobe", &binary()?.display().to_string());
    let path = folder.path().join(UNIT);
    std::fs::write(&path, text)?;
    let verified = command("systemd-analyze")
        .arg("verify")
        .arg(&path)
        .output()?;
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    ensure!(verified.status.success() && !said.contains(UNIT), "{said}");
    let judged = command("systemd-analyze")
        .args(["security", "--offline=true", "--no-pager", "--threshold"])
        .arg(WORST_EXPOSURE)
        .arg(&path)
        .output()?;
    let said = String::from_utf8_lossy(&judged.stdout).into_owned();
    ensure!(said.contains("Overall exposure level"), "{judged:?}");
    ensure!(judged.status.success(), "{said}");
    Ok(())
}

/// The value of a setting of the unit.
fn setting(name: &str) -> Result<String> {
    let text = std::fs::read_to_string(unit())?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
        .with_context(|| format!("the unit has no {name}"))?;
    Ok(value.to_owned())
}

#[test]
fn what_the_unit_allows_is_enough() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "setpriv", "unshare", "mount"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(0).start()?;
    let capabilities = setting("CapabilityBoundingSet")?;
    assert_eq!(capabilities, setting("AmbientCapabilities")?);
    let mut set = "-all".to_owned();
    for capability in capabilities.split(' ') {
        let name = capability.strip_prefix("CAP_").context("no capability")?;
        set.push_str(",+");
        set.push_str(&name.to_ascii_lowercase());
    }
    // As ProtectSystem=strict and ProtectKernelTunables=yes leave it, as far as mounts go.
    let script = "mount --make-rprivate / && mount -o bind,remount,ro / && mount -o bind,remount,ro /sys && exec \"$@\"";
    let socket_path = lab.folder().join("notify");
    let socket = UnixDatagram::bind(&socket_path)?;
    socket.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut service = Command::new("unshare");
    piped(
        service
            .args([
                "--mount",
                "sh",
                "-c",
                script,
                "sh",
                "setpriv",
                "--no-new-privs",
            ])
            .args([
                "--inh-caps",
                &set,
                "--ambient-caps",
                &set,
                "--bounding-set",
                &set,
            ])
            .arg(binary()?)
            .args(["watch", "-ojson"])
            .env("NOTIFY_SOCKET", &socket_path),
    );
    let running = Running::spawn(&lab.joiner.namespace, &mut service)?;
    let mut buffer = [0; 256];
    let length = socket.recv(&mut buffer).with_context(|| running.said())?;
    ensure!(buffer[..length].starts_with(b"READY=1\n"));
    let server = lab.apiserver_node.at(APISERVER_PORT);
    lab.joiner
        .namespace
        .enter(|| std::net::TcpStream::connect(server))??;
    running.signal(Signal::TERM)?;
    let finished = running.wait()?;
    ensure!(finished.code == Some(0), "{finished:?}");
    ensure!(!finished.stderr.contains("warn"), "{finished:?}");
    assert_eq!(established_total(&verdict(&finished.stdout)?), 1);
    Ok(())
}
