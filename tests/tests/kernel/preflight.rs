//! A whole preflight: one etcd member, an API server, TLS, the read.

use std::time::Duration;

use anyhow::Result;
use joinprobe_lab::etcd::CLIENT_PORT;
use joinprobe_lab::lab::APISERVER_PORT;
use joinprobe_lab::{Impairment, Lab, take_turn};

use super::tell;

#[test]
fn preflight_passes() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd"])? else {
        return Ok(());
    };
    let lab = Lab::builder()
        .members(1)
        .shape(Impairment::half_of_rtt(Duration::from_millis(10)))
        .start()?;
    let mut args = lab.preflight_args();
    // Emulated machines are slow; nothing here is about how long it takes.
    args.extend(["-o", "json", "--timeout", "30s"].map(Into::into));
    let run = lab.run_joinprobe(args)?;
    assert_eq!(run.code, Some(0), "{run:?}");
    let report = run.report()?;
    assert_eq!(report.text("/etcd_probe/result"), "ok");
    for address in [
        lab.member_nodes[0].at(CLIENT_PORT),
        lab.apiserver_node.at(APISERVER_PORT),
    ] {
        let target = report.target(address)?;
        assert_eq!(target.number("/handshake/count")?, 1, "{target:?}");
        assert!(target.number("/path/count")? >= 5, "{target:?}");
        // Emulated machines are slow: no less than the path takes, and no server's time in it.
        let path = target.number("/path/p50_us")?;
        assert!((9_500..40_000).contains(&path), "{target:?}");
    }
    tell("preflight", "pass");
    Ok(())
}
