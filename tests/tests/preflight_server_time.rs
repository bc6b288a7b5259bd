//! A slow disk is told from a slow network.

use std::time::Duration;

use anyhow::{Context, Result};
use joinprobe_lab::etcd::{CLIENT_PORT, Disk, WriteLoad};
use joinprobe_lab::report::Report;
use joinprobe_lab::{Lab, attempts, on_time, take_turn};
use serde_json::Value;

/// Every finding with this id, of all targets.
fn findings(report: &Report, id: &str) -> Vec<Value> {
    let targets = report.targets();
    let all = targets
        .iter()
        .filter_map(|target| target.0["findings"].as_array());
    all.flatten()
        .filter(|finding| finding["id"] == id)
        .cloned()
        .collect()
}

fn preflight(lab: &Lab) -> Result<(Option<i32>, Report)> {
    let mut args = lab.preflight_args();
    args.extend(["-o".into(), "json".into()]);
    let run = lab.run_joinprobe(args)?;
    Ok((run.code, run.report()?))
}

/// A client at every member that writes, as the API servers of a cluster do.
fn load(lab: &Lab) -> Result<Vec<WriteLoad>> {
    let pause = Duration::from_millis(50);
    let start = |node: &std::sync::Arc<joinprobe_lab::lab::Node>| {
        WriteLoad::start(&node.namespace, node.at(CLIENT_PORT), &lab.pki, pause)
    };
    lab.member_nodes.iter().map(start).collect()
}

#[test]
fn slow_disks_behind_a_fast_link_are_server_time() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd", "strace"])? else {
        return Ok(());
    };
    let disk = Disk {
        sync_delay: Duration::from_millis(150),
    };
    let lab = Lab::builder().disk(disk).start()?;
    lab.set_rtt(Duration::from_millis(5));
    let writers = load(&lab)?;
    let mut named = 0;
    let runs = 5;
    for _ in 0..runs {
        let (code, report) = preflight(&lab)?;
        let medians = findings(&report, "etcd-path-rtt-median");
        assert_eq!(medians.len(), 3);
        for median in medians {
            assert_eq!(median["state"], "pass", "{median}");
        }
        let server = findings(&report, "etcd-server-time");
        let server = server.first().context("server time is missing")?;
        println!("exit {code:?}: {}", server["text"]);
        assert_eq!(code, Some(0), "{report:?}");
        if server["state"] == "warn" {
            let hint = server["hint"].as_str().unwrap_or_default();
            assert!(hint.contains("disk"), "{server}");
            named += 1;
        }
    }
    for writer in writers {
        assert!(writer.stop()? > 0, "nothing was written");
    }
    // A read that comes between two syncs does not wait for one.
    assert!(named * 2 > runs, "named in {named} of {runs} preflights");
    Ok(())
}

#[test]
fn a_slow_link_before_fast_disks_is_the_network() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd"])? else {
        return Ok(());
    };
    let lab = Lab::builder().start()?;
    lab.set_rtt(Duration::from_millis(130));
    let writers = load(&lab)?;
    let judged = attempts(3, || {
        let (code, report) = preflight(&lab)?;
        assert_eq!(code, Some(3));
        for median in findings(&report, "etcd-path-rtt-median") {
            assert_eq!(median["state"], "fail", "{median}");
        }
        let server = findings(&report, "etcd-server-time");
        let server = server.first().context("server time is missing")?;
        println!("{}", server["text"]);
        // The disks are the machine's own, and others write to them.
        on_time(server["state"] == "pass", || server.to_string())
    });
    for writer in writers {
        assert!(writer.stop()? > 0, "nothing was written");
    }
    judged
}
