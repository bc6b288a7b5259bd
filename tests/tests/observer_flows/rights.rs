//! What is left of adopting connections with fewer rights.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Result, ensure};
use joinprobe_lab::bpf::CallbackFlags;
use joinprobe_lab::lab::{Running, binary};
use joinprobe_lab::{Namespace, attempts, on_time, take_turn};
use rustix::process::Signal;

use super::existing::{Busy, CALLBACKS, sock_ops_programs};

#[test]
fn without_the_way_into_other_namespaces_its_own_is_left() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "bpftool", "setpriv"])? else {
        return Ok(());
    };
    attempts(3, adopt_in_one_namespace)
}

fn adopt_in_one_namespace() -> Result<()> {
    let foreign = sock_ops_programs()?;
    let (own, other) = (Namespace::create()?, Namespace::create()?);
    let folder = tempfile::tempdir()?;
    let flags = CallbackFlags::load(folder.path())?;
    let (here, ending, there) = (
        Busy::start(&own, "127.0.0.1:2379")?,
        Busy::start(&own, "127.0.0.1:2380")?,
        Busy::start(&other, "127.0.0.1:2379")?,
    );
    let only = "-all,+bpf,+net_admin,+perfmon,+sys_ptrace";
    let mut words: Vec<OsString> = ["--inh-caps", only, "--bounding-set", only, "--"]
        .map(Into::into)
        .to_vec();
    words.push(binary()?.into_os_string());
    words.extend(["watch", "-ojson", "--all-namespaces", "--interval=1s"].map(Into::into));
    let mut watch = Running::start(&own, Path::new("setpriv"), words)?;
    watch.wait_ready()?;
    let set = |namespace: &Namespace, busy: &Busy| -> Result<Vec<u32>> {
        let found = flags.of(namespace)?;
        let ports = busy.ports()?;
        Ok(ports
            .iter()
            .map(|ports| found.get(ports).copied().unwrap_or(0))
            .collect())
    };
    assert_eq!(set(&own, &here)?, [CALLBACKS; 2]);
    assert_eq!(set(&other, &there)?, [0; 2]);
    watch.wait_until(|watch| watch.printed().contains(r#""adopted":1"#))?;
    drop(ending);
    // Its end is told as that of a connection from before.
    let told = |line: &str| {
        [
            r#""event":"closed""#,
            r#""role":"etcd-peer""#,
            r#""adopted":true"#,
        ]
        .iter()
        .all(|field| line.contains(field))
    };
    watch.wait_until(|watch| watch.printed().lines().any(told))?;
    watch.signal(Signal::TERM)?;
    let finished = watch.wait()?;
    ensure!(finished.code == Some(0), "{finished:?}");
    let lost = "connections of other network namespaces that were there before are not all observed: that takes CAP_SYS_ADMIN";
    ensure!(
        finished.stderr.lines().any(|line| line.ends_with(lost)),
        "{finished:?}"
    );
    // While another observer is loaded on this host, callbacks stay: it may need them.
    let kept = foreign.intersection(&sock_ops_programs()?).next().is_some();
    let expected = [if kept { CALLBACKS } else { 0 }; 2];
    let has = set(&own, &here)?;
    // One that came and went in between kept them too.
    on_time(has == expected, || {
        format!("{has:?}, expected {expected:?}")
    })
}
