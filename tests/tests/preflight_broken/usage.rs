//! Arguments that cannot be followed, or not to a verdict.

use std::ffi::OsString;

use anyhow::Result;
use joinprobe_lab::lab::{APISERVER_PORT, Finished};
use joinprobe_lab::{Lab, take_turn};

use crate::{and, check_refused, run};

#[test]
fn wrong_usage() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(1).start()?;
    for (bad, words) in [
        ("10.1.0.1", "port"),
        ("10.1.0.1:70000", "port"),
        (":2379", "host"),
        ("[fd00::1:2379", "fd00::1"),
    ] {
        let refused = run(&lab, and(&lab, &["--etcd".into(), bad.into()]))?;
        check_refused(&refused, 2, &[words]);
    }
    Ok(())
}

#[test]
fn without_any_etcd_it_is_not_a_pass() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(1).start()?;
    let apiserver = |more: &[&str]| -> Result<Finished> {
        let address = lab.apiserver_node.at(APISERVER_PORT).to_string();
        let mut args: Vec<OsString> = ["preflight", "--apiserver", &address]
            .map(Into::into)
            .into();
        args.extend([
            "--apiserver-ca".into(),
            lab.pki.kubernetes.pair.cert.clone().into(),
        ]);
        args.extend(more.iter().map(Into::into));
        run(&lab, args)
    };
    let control_plane = apiserver(&[])?;
    assert_eq!(control_plane.code, Some(5), "{control_plane:?}");
    assert!(
        control_plane.stdout.contains("etcd-not-measured"),
        "{}",
        control_plane.stdout
    );
    assert_eq!(apiserver(&["--allow-inconclusive"])?.code, Some(0));
    assert_eq!(apiserver(&["--worker"])?.code, Some(0));
    Ok(())
}
