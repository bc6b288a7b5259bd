//! Targets and credentials that do not work: each run ends in time, with its code and one clear sentence, and still
//! reports the targets that do answer.

mod credentials;
mod targets;
mod usage;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use joinprobe_lab::etcd::CLIENT_PORT;
use joinprobe_lab::lab::Finished;
use joinprobe_lab::report::Report;
use joinprobe_lab::{Impairment, Lab};

/// `--timeout` of every run here, and how much later it may end on a loaded machine.
const TIMEOUT: Duration = Duration::from_secs(4);
const SLACK: Duration = Duration::from_secs(4);

fn lab() -> Result<Lab> {
    Lab::builder()
        .spare_nodes(1)
        .shape(Impairment::half_of_rtt(Duration::from_millis(4)))
        .start()
}

/// The usual arguments with the value after `flag` replaced.
fn with(lab: &Lab, flag: &str, value: &Path) -> Vec<OsString> {
    let mut args = lab.preflight_args();
    if let Some(place) = args.iter().position(|word| word == flag) {
        args[place + 1] = value.into();
    }
    args
}

fn and(lab: &Lab, more: &[String]) -> Vec<OsString> {
    let mut args = lab.preflight_args();
    args.extend(more.iter().map(Into::into));
    args
}

fn run(lab: &Lab, mut args: Vec<OsString>) -> Result<Finished> {
    args.extend([
        "-o".into(),
        "json".into(),
        "--timeout".into(),
        format!("{}s", TIMEOUT.as_secs()).into(),
    ]);
    let run = lab.run_joinprobe(args)?;
    assert!(run.elapsed < TIMEOUT + SLACK, "{run:?}");
    Ok(run)
}

/// The run fails because of `target` alone: the others are measured, and it has one failing finding that says why.
fn check_one_fails(lab: &Lab, run: &Finished, target: SocketAddr, words: &[&str]) -> Result<()> {
    assert_eq!(run.code, Some(3), "{run:?}");
    let report = run.report()?;
    let failed = report.target(target)?;
    assert_eq!(failed.verdict(), "fail", "{failed:?}");
    check_sentence(
        failed.findings("fail")[0]["text"]
            .as_str()
            .unwrap_or_default(),
        words,
    );
    for node in &lab.member_nodes {
        let address = node.at(CLIENT_PORT);
        if address != target {
            check_measured(&report, address)?;
        }
    }
    Ok(())
}

fn check_measured(report: &Report, address: SocketAddr) -> Result<()> {
    let target = report.target(address)?;
    assert!(target.number("/path/count")? >= 5, "{address}: {target:?}");
    assert_ne!(target.verdict(), "fail", "{address}: {target:?}");
    Ok(())
}

fn check_sentence(text: &str, words: &[&str]) {
    assert!(
        !text.is_empty() && !text.contains('\n'),
        "no one sentence: {text:?}"
    );
    let lower = text.to_lowercase();
    for word in words {
        assert!(
            lower.contains(&word.to_lowercase()),
            "{word:?} is not in {text:?}"
        );
    }
}

/// Refused before anything is measured: the code, nothing on stdout, one line on stderr.
fn check_refused(run: &Finished, code: i32, words: &[&str]) {
    assert_eq!(run.code, Some(code), "{run:?}");
    assert_eq!(run.stdout, "", "{run:?}");
    check_sentence(run.stderr.trim_end(), words);
}
