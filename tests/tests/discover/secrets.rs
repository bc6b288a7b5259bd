//! Nothing secret leaves the process.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use joinprobe_lab::lab::binary;
use joinprobe_lab::{Lab, take_turn};

use super::cluster_info::{self, PODS};
use super::node::{CERTIFICATE_KEY, Node, TOKEN_SECRET, kubeconfig};

/// The longest line of a PEM key: no output may hold it.
fn key_line(path: &std::path::Path) -> Result<String> {
    let text = std::fs::read_to_string(path)?;
    let line = text.lines().nth(1).context("no key")?;
    Ok(line.to_owned())
}

#[test]
fn no_output_holds_a_secret() -> Result<()> {
    let Some(_turn) = take_turn(&["etcd"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(1).start()?;
    lab.apiserver
        .answer_known(PODS, cluster_info::etcd_pods(&lab));
    let node = Node::new(&lab, "secrets")?
        .with_authorities()?
        .with_join_config(true)?
        .put(
            "etc/kubernetes/admin.conf",
            kubeconfig(&lab, "{token: adm1nt0k3n}")?,
        )?;
    let secrets = [
        TOKEN_SECRET.to_owned(),
        CERTIFICATE_KEY.to_owned(),
        "adm1nt0k3n".to_owned(),
        key_line(&lab.pki.etcd.pair.key)?,
        key_line(&lab.pki.kubernetes.pair.key)?,
    ];
    for format in ["json", "table"] {
        let root = node.root.display().to_string();
        let finished = lab.run_joinprobe([
            "preflight",
            "-vvvv",
            "-o",
            format,
            "--root",
            &root,
            "--discover-etcd",
            "--discover-members",
            "--etcd-mint-client-cert",
        ])?;
        assert_eq!(finished.code, Some(0), "{finished:?}");
        for secret in &secrets {
            assert!(!finished.stdout.contains(secret.as_str()), "{format}");
            assert!(!finished.stderr.contains(secret.as_str()), "{format}");
        }
    }
    // The kubeconfig's token went to the verified server and nowhere else.
    let requests = lab.apiserver.requests();
    assert!(requests.iter().any(|request| request.authorized));
    for request in requests {
        assert_eq!(
            request.authorized,
            request.path.starts_with(PODS),
            "{request:?}"
        );
    }
    Ok(())
}

#[test]
fn a_forced_core_dump_is_not_written() -> Result<()> {
    let Some(_turn) = take_turn(&["etcd"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(1).start()?;
    // Without an answer the run lasts until its timeout, its secrets in memory.
    let join = super::node::join_config(&lab, true)?
        .replace(&super::node::apiserver(&lab), "10.1.0.99:6443");
    let node = Node::new(&lab, "core")?
        .with_authorities()?
        .put(super::node::JOIN, join)?;
    let folder = lab.folder().join("cores");
    std::fs::create_dir(&folder)?;
    // A process without protection dumps here; otherwise the test would show nothing.
    let mut control = Command::new("sleep");
    control.arg("60");
    let control = abort(&lab, &control, &folder)?;
    assert!(control.core_dumped(), "no core dumps here: {control:?}");
    for core in std::fs::read_dir(&folder)? {
        std::fs::remove_file(core?.path())?;
    }
    let mut command = Command::new(binary()?);
    command.args(["preflight", "--timeout", "30s", "--root"]);
    command.arg(&node.root);
    let status = abort(&lab, &command, &folder)?;
    assert!(!status.core_dumped(), "{status:?}");
    assert_eq!(std::fs::read_dir(&folder)?.count(), 0);
    Ok(())
}

/// Runs a command with core dumps allowed and aborts it when it has got going.
fn abort(lab: &Lab, command: &Command, folder: &std::path::Path) -> Result<ExitStatus> {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "ulimit -c unlimited; exec \"$@\"", "sh"])
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = lab.joiner.namespace.spawn(&mut shell)?;
    std::thread::sleep(Duration::from_secs(3));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::ABORT)?;
    let status = child.wait()?;
    assert_eq!(status.signal(), Some(6), "{status:?}");
    Ok(status)
}
