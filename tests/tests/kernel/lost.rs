//! What a host lacks: a preflight works all the same, and says what it lost.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use joinprobe_lab::lab::{Finished, Running, binary};
use joinprobe_lab::{Impairment, Lab, take_turn};

use super::tell;

/// Hides a part of the host in a mount namespace of its own, then starts the words that follow.
const PRIVATE: &str = "mount --make-rprivate / && ";
const START: &str = " && exec \"$@\"";

/// Runs a preflight of the API server under a shell script that first takes something away.
fn without(lab: &Lab, script: &str) -> Result<Finished> {
    let mut words: Vec<OsString> = ["-m", "sh", "-c"].map(Into::into).to_vec();
    words.push([PRIVATE, script, START].concat().into());
    words.push("sh".into());
    words.extend(command(lab)?);
    Running::start(&lab.joiner.namespace, Path::new("unshare"), words)?.wait()
}

/// The same with these capabilities only.
fn with_capabilities(lab: &Lab, only: &str) -> Result<Finished> {
    let mut words: Vec<OsString> = ["--inh-caps", only, "--bounding-set", only, "--"]
        .map(Into::into)
        .to_vec();
    words.extend(command(lab)?);
    Running::start(&lab.joiner.namespace, Path::new("setpriv"), words)?.wait()
}

fn command(lab: &Lab) -> Result<Vec<OsString>> {
    let mut words = vec![binary()?.into_os_string()];
    words.push("preflight".into());
    let address = lab.apiserver_node.at(joinprobe_lab::lab::APISERVER_PORT);
    words.extend(["--worker", "--timeout", "30s", "-o", "json", "--apiserver"].map(Into::into));
    words.push(address.to_string().into());
    words.extend([
        "--apiserver-ca".into(),
        lab.pki.kubernetes.pair.cert.clone().into(),
    ]);
    Ok(words)
}

/// The verdict is reached and stands on the network's RTT.
fn works(run: &Finished) -> Result<()> {
    ensure!(run.code == Some(0), "{run:?}");
    let report = run.report()?;
    let targets = report.targets();
    ensure!(targets.len() == 1, "{run:?}");
    for target in targets {
        ensure!(target.number("/handshake/count")? == 1, "{run:?}");
        ensure!(target.number("/path/count")? >= 5, "{run:?}");
    }
    Ok(())
}

fn says(run: &Finished, words: &[&str]) -> Result<()> {
    let said = words.iter().all(|word| run.stderr.contains(word));
    ensure!(said, "it does not say {words:?}: {}", run.stderr);
    Ok(())
}

fn lab() -> Result<Lab> {
    Lab::builder()
        .members(0)
        .shape(Impairment::half_of_rtt(Duration::from_millis(5)))
        .start()
}

#[test]
fn a_host_that_lacks_things() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "unshare", "setpriv"])? else {
        return Ok(());
    };
    let lab = lab()?;

    let run = without(&lab, "mount -t tmpfs none /sys/kernel/btf")?;
    works(&run)?;
    says(&run, &["without their cause", "BTF"])?;

    let run = with_capabilities(&lab, "-all,+bpf,+net_admin")?;
    works(&run)?;
    says(&run, &["without their cause", "CAP_PERFMON is missing"])?;

    // Whether or not it is mounted: afterwards it is not.
    let run = without(
        &lab,
        "{ umount -l /sys/kernel/tracing; umount -l /sys/kernel/debug; mount -t tmpfs none /sys/kernel/debug; } \
         2>/dev/null; true",
    )?;
    works(&run)?;

    let run = without(
        &lab,
        "sed -n 's/^[^ ]* \\([^ ]*\\) cgroup2 .*/\\1/p' /proc/self/mounts | while read -r mounted; do \
         umount -l \"$mounted\" || exit 1; done && ! grep -q ' cgroup2 ' /proc/self/mounts && \
         mount -t tmpfs none /sys/fs/cgroup && mkdir /sys/fs/cgroup/named && \
         mount -t cgroup -o none,name=jplab none /sys/fs/cgroup/named",
    )?;
    works(&run)?;
    tell("without", "BTF, CAP_PERFMON, tracefs, cgroup v2");
    Ok(())
}

#[test]
fn what_lockdown_takes() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe"])? else {
        return Ok(());
    };
    // `none [integrity] confidentiality`
    let state = std::fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    let chosen = state
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    let chosen = chosen.map_or("not there", |(name, _)| name);
    let lab = lab()?;
    let words = command(&lab)?;
    let run = lab.run_joinprobe(words.into_iter().skip(1))?;
    works(&run)?;
    if chosen == "confidentiality" {
        says(&run, &["without their cause", "locked down"])?;
        // Where that cannot be known beforehand, the kernel's refusal tells: just as much is lost.
        let hidden = without(&lab, "mount -t tmpfs none /sys/kernel/security")?;
        works(&hidden)?;
        says(&hidden, &["without their cause", "the kernel refuses"])?;
        let lines = |run: &Finished| run.stderr.lines().count();
        ensure!(lines(&hidden) == lines(&run), "{run:?} {hidden:?}");
    } else {
        ensure!(!run.stderr.contains("locked down"), "{run:?}");
    }
    tell("lockdown", chosen);
    Ok(())
}
