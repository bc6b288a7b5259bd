//! How a verdict is reached can be chosen, and the output says by what.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use joinprobe_lab::lab::{Finished, Running, binary};
use joinprobe_lab::report::Report;
use joinprobe_lab::{Impairment, Lab, take_turn};

/// A lab whose members are beyond the fail limit of 100 ms.
fn far() -> Result<Lab> {
    Lab::builder()
        .members(1)
        .shape(Impairment::half_of_rtt(Duration::from_millis(120)))
        .start()
}

/// Runs a preflight with variables in its environment, a client certificate and further arguments.
fn preflight(lab: &Lab, variables: &[&str], more: &[&str]) -> Result<Finished> {
    let variables = variables.iter().map(OsString::from);
    let more = more.iter().map(OsString::from);
    let args = variables
        .chain([binary()?.into()])
        .chain(lab.preflight_args())
        .chain(more);
    Running::start(&lab.joiner.namespace, Path::new("env"), args)?.wait()
}

/// State, limit and source of the finding on the member's median RTT.
fn rtt(report: &Report) -> Result<(&str, u64, &str)> {
    let targets = report.targets();
    let findings = targets.first().context("no target")?.0["findings"].as_array();
    let median = findings
        .into_iter()
        .flatten()
        .find(|finding| finding["id"] == "etcd-path-rtt-median")
        .with_context(|| format!("{report:?}"))?;
    let text = |field: &str| median[field].as_str().unwrap_or_default();
    let limit = median["limit_us"].as_u64().context("no limit")?;
    Ok((text("state"), limit, text("source")))
}

#[test]
fn mode_warn_reports_fails_as_warnings() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd"])? else {
        return Ok(());
    };
    let lab = far()?;
    let run = preflight(&lab, &[], &["-o", "json", "--mode", "warn"])?;
    let report = run.report()?;
    assert_eq!((run.code, report.verdict()), (Some(0), "warn"), "{run:?}");
    assert!(report.findings("fail").is_empty(), "{report:?}");
    let (state, limit, source) = rtt(&report)?;
    assert_eq!((state, limit), ("warn", 100_000));
    assert!(source.contains("election timeout"), "{source}");
    assert!(
        report
            .findings("warn")
            .iter()
            .any(|finding| finding["id"] == "fails-as-warnings"),
        "{report:?}"
    );
    // A monitoring plugin has a status for it, which is not OK.
    let run = preflight(&lab, &["JOINPROBE_MODE=warn"], &["-o", "nagios"])?;
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.starts_with("JOINPROBE WARNING - "), "{run:?}");
    Ok(())
}

/// How a limit is given, and what the finding on the member's RTT must say then.
#[derive(Debug)]
struct Case<'a> {
    variables: &'a [&'a str],
    flags: &'a [&'a str],
    code: i32,
    state: &'a str,
    limit_ms: u64,
    source: &'a str,
}

impl<'a> Case<'a> {
    fn new(
        variables: &'a [&'a str],
        flags: &'a [&'a str],
        code: i32,
        state: &'a str,
        limit_ms: u64,
    ) -> Self {
        Self {
            variables,
            flags,
            code,
            state,
            limit_ms,
            source: "",
        }
    }

    fn by(self, source: &'a str) -> Self {
        Self { source, ..self }
    }
}

#[test]
fn every_limit_says_where_it_comes_from() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd"])? else {
        return Ok(());
    };
    let lab = far()?;
    let file = lab.folder().join("joinprobe.yaml");
    std::fs::write(&file, "limit: [etcd-rtt-fail=300ms, etcd-rtt-warn=90ms]\n")?;
    let config = file.to_str().context("no UTF-8")?;
    let by_file = ["--config", config];
    let by_file_and_flag = ["--config", config, "--limit", "etcd-rtt-fail=80ms"];
    let cases = [
        Case::new(&[], &[], 3, "fail", 100)
            .by("a tenth of the election timeout of 1000 ms (etcd defaults)"),
        Case::new(&[], &["--limit", "etcd-rtt-fail=110ms"], 3, "fail", 110).by("--limit"),
        Case::new(
            &["JOINPROBE_LIMIT=etcd-rtt-fail=105ms,apiserver-connect-fail=3s"],
            &[],
            3,
            "fail",
            105,
        )
        .by("environment variable JOINPROBE_LIMIT"),
        Case::new(&[], &by_file, 0, "warn", 90).by("joinprobe.yaml (limit)"),
        // What is typed wins over the file.
        Case::new(&[], &by_file_and_flag, 3, "fail", 80).by("--limit"),
        Case::new(&[], &["--profile", "stretched"], 0, "pass", 250).by("profile stretched"),
        Case::new(&["JOINPROBE_PROFILE=openshift"], &[], 3, "fail", 50).by("profile openshift"),
        Case::new(
            &[],
            &["--etcd-heartbeat", "300ms", "--etcd-election", "3s"],
            0,
            "pass",
            150,
        )
        .by("half of the heartbeat interval of 300 ms (--etcd-heartbeat, --etcd-election)"),
    ];
    for case in cases {
        let mut flags = case.flags.to_vec();
        flags.extend(["-o", "json"]);
        let run = preflight(&lab, case.variables, &flags)?;
        let report = run.report()?;
        let (state, limit_us, source) = rtt(&report)?;
        assert_eq!(run.code, Some(case.code), "{case:?}: {run:?}");
        assert_eq!(
            (state, limit_us),
            (case.state, case.limit_ms * 1000),
            "{case:?}"
        );
        assert!(source.contains(case.source), "{case:?}: {source}");
    }
    Ok(())
}

#[test]
fn more_confidence_takes_more_connections() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd"])? else {
        return Ok(());
    };
    let lab = Lab::builder()
        .shape(Impairment::half_of_rtt(Duration::from_millis(110)))
        .start()?;
    let connections = |confidence: &str| -> Result<u64> {
        let flags = ["-o", "json", "--timeout", "30s", "--confidence", confidence];
        let run = preflight(&lab, &[], &flags)?;
        assert_eq!(run.code, Some(3), "{run:?}");
        let report = run.report()?;
        let targets = report.targets();
        targets
            .iter()
            .filter(|target| target.text("/role") == "etcd-client")
            .map(|target| target.number("/connections/established"))
            .sum()
    };
    // Fifteen samples that agree are enough for 95 %, and for 99.9 % over four targets they are not.
    assert_eq!(connections("95")?, 3);
    assert!(connections("99.9")? >= 6);
    Ok(())
}
