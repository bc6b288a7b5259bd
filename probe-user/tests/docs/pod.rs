//! The manifests of docs/static-pod-and-daemonset.md ask for what joinprobe needs, and for no more.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use joinprobe_lab::bpf::{Cgroup, cgroup_root};
use joinprobe_lab::lab::binary;
use joinprobe_lab::{Namespace, take_turn};
use serde_json::Value;

use crate::blocks::{object, strings};

const PAGE: &str = "docs/static-pod-and-daemonset.md";

/// The container of each manifest, and its pod.
fn pods() -> Result<[Value; 2]> {
    let pod = object(PAGE, "Pod")?["spec"].clone();
    let set = object(PAGE, "DaemonSet")?["spec"]["template"]["spec"].clone();
    Ok([pod, set])
}

#[test]
fn nothing_more_than_needed() -> Result<()> {
    for pod in pods()? {
        ensure!(
            pod["hostNetwork"] == true && pod["hostPID"].is_null(),
            "{pod}"
        );
        let container = &pod["containers"][0];
        let security = &container["securityContext"];
        ensure!(security["privileged"].is_null(), "{security}");
        ensure!(security["readOnlyRootFilesystem"] == true, "{security}");
        let capabilities: BTreeSet<_> = strings(&security["capabilities"]["add"])
            .into_iter()
            .collect();
        let needed = ["BPF", "NET_ADMIN", "PERFMON"].map(str::to_owned);
        assert_eq!(capabilities, needed.into());
        assert_eq!(strings(&security["capabilities"]["drop"]), ["ALL"]);
        let volumes: Vec<_> = pod["volumes"]
            .as_array()
            .context("no volumes")?
            .iter()
            .collect();
        for mount in container["volumeMounts"].as_array().context("no mounts")? {
            ensure!(mount["readOnly"] == true, "{mount}");
            ensure!(
                volumes.iter().any(|volume| volume["name"] == mount["name"]),
                "{mount}"
            );
        }
    }
    Ok(())
}

#[test]
fn it_watches_with_just_that() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "setpriv", "unshare"])? else {
        return Ok(());
    };
    let pod = &pods()?[0];
    let container = &pod["containers"][0];
    let namespace = Namespace::create()?;
    let folder = tempfile::tempdir()?;
    let mounted = folder.path().join("cgroup");
    fs::create_dir(&mounted)?;
    let words = strings(&container["command"]);
    let args: Vec<String> = words[1..]
        .iter()
        .map(|word| word.replace("/host/cgroup", &mounted.display().to_string()))
        .collect();
    let capabilities: Vec<_> = strings(&container["securityContext"]["capabilities"]["add"])
        .iter()
        .map(|name| format!("+{}", name.to_lowercase()))
        .collect();
    // As a container: mounts of its own, a part of the cgroup hierarchy as its root, nothing but those capabilities.
    let script =
        "mount --bind \"$0\" \"$1\" && mount -o remount,bind,ro \"$1\" && shift && exec \"$@\"";
    let _cgroup = Cgroup::enter()?;
    let mut child = namespace.spawn(
        Command::new("unshare")
            .args(["--mount", "--cgroup", "sh", "-c", script])
            .arg(cgroup_root()?)
            .arg(&mounted)
            .args(["setpriv", "--no-new-privs"])
            .arg(format!("--bounding-set=-all,{}", capabilities.join(",")))
            .arg(format!("--inh-caps=-all,{}", capabilities.join(",")))
            .arg(binary()?)
            .args(args)
            .args(["--interval=1s", "--duration=20s"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()),
    )?;
    let seen = sees_a_connection(&namespace, &mut child);
    let _ = child.kill();
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(seen?, "no interval with the connection; it said: {said}");
    Ok(())
}

/// Connects to a member's port again and again, until an interval shows it.
fn sees_a_connection(namespace: &Namespace, child: &mut std::process::Child) -> Result<bool> {
    let listener = namespace.enter(|| TcpListener::bind("127.0.0.1:2379"))??;
    let stdout = child.stdout.take().context("no output")?;
    let (lines, received) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    });
    let patience = Instant::now() + Duration::from_secs(15);
    while Instant::now() < patience {
        namespace.enter(|| TcpStream::connect(("127.0.0.1", 2379)))??;
        let _ = listener.accept()?;
        while let Ok(line) = received.recv_timeout(Duration::from_millis(100)) {
            let line: Value = serde_json::from_str(&line)?;
            let targets = line["targets"].as_array().into_iter().flatten();
            for target in targets {
                if target["connections"]["established"].as_u64() > Some(0) {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}
