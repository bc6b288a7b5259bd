//! `joinprobe doctor` on this host, and on this host with things taken away.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use joinprobe_lab::bpf::{Cgroup, OtherProgram};
use joinprobe_lab::lab::{Finished, Running, binary};
use joinprobe_lab::{Namespace, schema, scratch_dir, take_turn};
use serde_json::Value;

/// Runs the doctor behind another program's words and returns how it ended and its checks.
fn doctor(before: &[&str], more: &[OsString]) -> Result<(Finished, Vec<Value>)> {
    let namespace = Namespace::create()?;
    let mut words: Vec<OsString> = before.iter().map(Into::into).collect();
    words.push(binary()?.into());
    words.extend(["doctor", "-o", "json"].map(Into::into));
    words.extend(more.iter().cloned());
    let program = words.remove(0);
    let run = Running::start(&namespace, Path::new(&program), words)?.wait()?;
    let line: Value = serde_json::from_str(&run.stdout).with_context(|| format!("{run:?}"))?;
    schema::check(&line)?;
    ensure!(line["kind"] == "doctor", "{line}");
    ensure!(
        line["can_measure"] == Value::Bool(run.code == Some(0)),
        "{run:?}"
    );
    let checks = line["checks"].as_array().context("no checks")?.clone();
    Ok((run, checks))
}

/// The checks of a kind that are in this state.
fn texts(checks: &[Value], id: &str, state: &str) -> String {
    let wanted = |check: &&Value| check["id"] == id && check["state"] == state;
    let texts = checks
        .iter()
        .filter(wanted)
        .filter_map(|c| c["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_host_that_has_everything() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe"])? else {
        return Ok(());
    };
    let (run, checks) = doctor(&[], &[])?;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        texts(&checks, "attach", "pass").contains("attach"),
        "{run:?}"
    );
    assert!(
        texts(&checks, "cgroup", "pass").contains("mounted at"),
        "{run:?}"
    );
    for check in &checks {
        let asks = check["state"] == "warn" || check["state"] == "fail";
        let remedy = check["remedy"].as_str().unwrap_or_default();
        assert_eq!(asks, !remedy.is_empty(), "{check}");
    }
    Ok(())
}

#[test]
fn missing_rights_are_named_one_by_one() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "setpriv", "unshare"])? else {
        return Ok(());
    };
    let only = [
        "setpriv",
        "--inh-caps",
        "-all",
        "--bounding-set",
        "-all",
        "--",
    ];
    let (run, checks) = doctor(&only, &[])?;
    assert_eq!(run.code, Some(1), "{run:?}");
    let missing = texts(&checks, "capability", "fail");
    assert!(
        missing.contains("CAP_BPF is") && missing.contains("CAP_NET_ADMIN is"),
        "{missing}"
    );
    assert!(
        texts(&checks, "capability", "warn").contains("CAP_PERFMON"),
        "{run:?}"
    );

    let (run, checks) = doctor(&["unshare", "--user", "--map-root-user"], &[])?;
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(
        texts(&checks, "user-namespace", "fail").contains("user namespace"),
        "{run:?}"
    );
    Ok(())
}

#[test]
fn layouts_and_missing_types_are_told() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "unshare"])? else {
        return Ok(());
    };
    let script = "mount --make-rprivate / && mount -t tmpfs none /sys/kernel/btf && \
                  sed -n 's/^[^ ]* \\([^ ]*\\) cgroup2 .*/\\1/p' /proc/self/mounts | \
                  while read -r mounted; do umount -l \"$mounted\" || exit 1; done && exec \"$@\"";
    let (run, checks) = doctor(&["unshare", "-m", "sh", "-c", script, "sh"], &[])?;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(texts(&checks, "btf", "warn").contains("BTF"), "{run:?}");
    assert!(
        texts(&checks, "limitation", "warn").contains("BTF"),
        "{run:?}"
    );
    assert!(
        texts(&checks, "cgroup", "warn").contains("mounts version 2 for itself"),
        "{run:?}"
    );
    Ok(())
}

#[test]
fn other_programs_on_the_hook_are_named() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "bpftool"])? else {
        return Ok(());
    };
    let folder = scratch_dir()?;
    let cgroup = Cgroup::enter()?;
    let other = OtherProgram::load(folder.path())?;
    let more = [OsString::from("--cgroup"), cgroup.path().into()];
    for (shared, state, code) in [(true, "pass", 0), (false, "fail", 1)] {
        let attached = other.attach(cgroup.path(), shared)?;
        let (run, checks) = doctor(&[], &more)?;
        assert_eq!(run.code, Some(code), "{run:?}");
        assert!(
            texts(&checks, "hook", state).contains("lab_other"),
            "{run:?}"
        );
        drop(attached);
    }
    Ok(())
}
