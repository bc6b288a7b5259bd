//! A hundred preflights over the same path: how often the verdict is the right one. docs/verdicts.md has the figures.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use joinprobe_lab::lab::{Finished, Running};
use joinprobe_lab::{Impairment, Lab, take_turn};

const RUNS: usize = 100;
/// So many at once: each waits for the network nearly all of its time, and one does not disturb another.
const AT_ONCE: usize = 5;
const PROGRAMS: &[&str] = &["joinprobe", "etcd"];

/// A hundred preflights in a lab that `shape` has shaped; `None` where they cannot run.
///
/// The turn is given away between batches: others need not wait for all of them.
fn sweep(shape: impl FnOnce(&Lab)) -> Result<Option<Vec<Finished>>> {
    let Some(turn) = take_turn(PROGRAMS)? else {
        return Ok(None);
    };
    let lab = Lab::builder().start()?;
    shape(&lab);
    drop(turn);
    let mut args = lab.preflight_args();
    args.extend(["-o".into(), "json".into()]);
    let mut runs = Vec::new();
    while runs.len() < RUNS {
        let _turn = take_turn(PROGRAMS)?.context("a turn was given before")?;
        let batch: Vec<Running> = (0..AT_ONCE)
            .map(|_| lab.start_joinprobe(args.clone()))
            .collect::<Result<_>>()?;
        for running in batch {
            runs.push(running.wait()?);
        }
    }
    Ok(Some(runs))
}

/// How often each exit code came.
fn tally(runs: &[Finished]) -> BTreeMap<Option<i32>, usize> {
    let mut codes = BTreeMap::new();
    for run in runs {
        *codes.entry(run.code).or_insert(0) += 1;
    }
    codes
}

#[test]
#[ignore = "takes minutes; `cargo xtask test --full` runs it"]
fn far_beyond_the_fail_limit() -> Result<()> {
    let shape = |lab: &Lab| lab.set_rtt(Duration::from_millis(150));
    let Some(runs) = sweep(shape)? else {
        return Ok(());
    };
    let codes = tally(&runs);
    println!("exit codes of {RUNS} preflights: {codes:?}");
    assert!(codes.get(&Some(3)) >= Some(&95), "{codes:?}");
    Ok(())
}

#[test]
#[ignore = "takes minutes; `cargo xtask test --full` runs it"]
fn between_warn_and_fail() -> Result<()> {
    let shape = |lab: &Lab| lab.set_rtt(Duration::from_millis(60));
    let Some(runs) = sweep(shape)? else {
        return Ok(());
    };
    let codes = tally(&runs);
    println!("exit codes of {RUNS} preflights: {codes:?}");
    let mut warned = 0;
    for run in runs.iter().filter(|run| run.code == Some(0)) {
        let report = run.report()?;
        let warnings = report.findings("warn");
        let median = |finding: &&serde_json::Value| finding["id"] == "etcd-path-rtt-median";
        warned += usize::from(warnings.into_iter().any(|finding| median(&finding)));
    }
    println!("{warned} passed with the warning");
    assert!(warned >= 95, "{warned}: {codes:?}");
    Ok(())
}

#[test]
#[ignore = "takes minutes; `cargo xtask test --full` runs it"]
fn a_fifth_of_the_packets_late() -> Result<()> {
    let shape = |lab: &Lab| {
        let half = Impairment::half_of_rtt(Duration::from_millis(8));
        lab.shape(half);
        // A late packet holds up none behind it: those of the other preflights are on the same link.
        let late = half.with_reordering(0.2, Duration::from_millis(100));
        for node in lab.member_nodes.iter().chain([&lab.apiserver_node]) {
            lab.link.set(node.id, lab.joiner.id, late);
        }
    };
    let Some(runs) = sweep(shape)? else {
        return Ok(());
    };
    let codes = tally(&runs);
    println!("exit codes of {RUNS} preflights: {codes:?}");
    println!("{} inconclusive", codes.get(&Some(5)).unwrap_or(&0));
    if let Some(open) = runs.iter().find(|run| run.code == Some(5)) {
        println!(
            "one of them: {:#?}",
            open.report()?.findings("inconclusive")
        );
    }
    let failed: Vec<_> = runs.iter().filter(|run| run.code == Some(3)).collect();
    assert!(failed.is_empty(), "{codes:?}: {failed:?}");
    assert!(codes.keys().all(|code| [Some(0), Some(5)].contains(code)));
    Ok(())
}
