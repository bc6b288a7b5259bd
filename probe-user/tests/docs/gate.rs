//! The gate of docs/cluster-api.md, in the scripts that cloud-init and Ignition make of it.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::blocks::{object, objects, strings};
use crate::scripts::{CODES, Stubs};

const PAGE: &str = "docs/cluster-api.md";
const GATE: &str = "/usr/local/sbin/joinprobe-gate";
const JOIN: &str = "kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml";

/// The commands before kubeadm, with the gate's file where the stubs are.
fn commands(config: &Value, stubs: &Stubs) -> Result<String> {
    let file = &config["files"][0];
    ensure!(
        file["path"] == GATE && file["permissions"] == "0755",
        "{file}"
    );
    stubs.put("gate", file["content"].as_str().context("no content")?)?;
    let commands = strings(&config["preKubeadmCommands"]).join("\n");
    ensure!(commands.contains(GATE), "{commands}");
    let gate = stubs.path().join("gate");
    Ok(commands.replace(GATE, &gate.display().to_string()))
}

/// What cloud-init makes of `runcmd`: one script, no `set -e`.
fn cloud_init(before: &str) -> String {
    format!("#!/bin/sh\n{before}\n{JOIN} && echo success\n")
}

/// Cluster API's /etc/kubeadm.sh.
fn ignition(before: &str) -> String {
    format!("#!/bin/bash\nset -e\n\n{before}\n\n{JOIN}\n")
}

#[test]
fn only_3_stops_the_join() -> Result<()> {
    let control_plane = object(PAGE, "KubeadmControlPlane")?;
    let workers = object(PAGE, "KubeadmConfigTemplate")?;
    for config in [
        &control_plane["spec"]["kubeadmConfigSpec"],
        &workers["spec"]["template"]["spec"],
    ] {
        for code in CODES {
            let stubs = Stubs::new(code)?;
            let before = commands(config, &stubs)?;
            for (interpreter, script) in [
                ("/bin/sh", cloud_init(&before)),
                ("/bin/bash", ignition(&before)),
            ] {
                let (_, calls) = stubs.run(interpreter, &script)?;
                let joined = calls.contains(JOIN);
                assert_eq!(joined, code != Some(3), "{interpreter} {code:?}: {calls}");
            }
        }
    }
    Ok(())
}

#[test]
fn without_the_gate_a_failure_stops_nothing_under_cloud_init() -> Result<()> {
    // Why the snippet needs its `|| exit 1`; were it otherwise, the page would be wrong.
    let (_, calls) = Stubs::new(Some(3))?.run("/bin/sh", &cloud_init("joinprobe preflight"))?;
    assert!(calls.contains(JOIN), "{calls}");
    let (_, calls) = Stubs::new(Some(5))?.run("/bin/bash", &ignition("joinprobe preflight"))?;
    assert!(!calls.contains(JOIN), "{calls}");
    Ok(())
}

#[test]
fn the_watch_is_no_reason_to_stop() -> Result<()> {
    let watched = object(PAGE, "KubeadmConfig")?;
    let before = strings(&watched["spec"]["preKubeadmCommands"]).join("\n");
    for (interpreter, script) in [
        ("/bin/sh", cloud_init(&before)),
        ("/bin/bash", ignition(&before)),
    ] {
        let stubs = Stubs::new(Some(0))?;
        stubs.put("systemd-run", "#!/bin/sh\nexit 1\n")?;
        let (_, calls) = stubs.run(interpreter, &script)?;
        assert!(calls.contains(JOIN), "{calls}");
    }
    Ok(())
}

#[test]
fn remediation_is_limited() -> Result<()> {
    for found in objects(PAGE)? {
        ensure!(
            found["apiVersion"].is_string() && found["metadata"]["name"].is_string(),
            "{found}"
        );
    }
    let control_plane = object(PAGE, "KubeadmControlPlane")?;
    ensure!(control_plane["spec"]["remediationStrategy"]["maxRetry"].as_u64() > Some(0));
    let check = object(PAGE, "MachineHealthCheck")?;
    ensure!(!check["spec"]["maxUnhealthy"].is_null(), "{check}");
    Ok(())
}
