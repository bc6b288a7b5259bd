//! The verdict follows from the round-trip time, and says why.

use std::time::Duration;

use anyhow::Result;
use joinprobe_lab::lab::Finished;
use joinprobe_lab::report::Report;
use joinprobe_lab::{Impairment, Lab, attempts, on_time, take_turn};

fn preflight(lab: &Lab, more: &[&str]) -> Result<Finished> {
    let mut args = lab.preflight_args();
    args.extend(more.iter().map(Into::into));
    lab.run_joinprobe(args)
}

fn warnings(report: &Report) -> Vec<String> {
    let texts = report.findings("warn").into_iter();
    texts.map(|finding| finding["text"].to_string()).collect()
}

#[test]
fn exit_codes_over_round_trip_times() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd"])? else {
        return Ok(());
    };
    let lab = Lab::builder().start()?;
    // (RTT, code, code with --strict)
    for (rtt, code, strict) in [(10, 0, 0), (70, 0, 4), (130, 3, 3)] {
        lab.set_rtt(Duration::from_millis(rtt));
        let run = preflight(&lab, &["-o", "json"])?;
        assert_eq!(run.code, Some(code), "at {rtt} ms: {run:?}");
        attempts(3, || {
            let run = preflight(&lab, &["-o", "json", "--strict"])?;
            // A server that is held up is worth a warning.
            let warned = strict == 0 && run.code == Some(4);
            on_time(!warned, || {
                format!("{:?}", run.report().map(|report| warnings(&report)))
            })?;
            assert_eq!(run.code, Some(strict), "at {rtt} ms with --strict: {run:?}");
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn a_fail_names_the_limit_its_value_and_its_source() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd"])? else {
        return Ok(());
    };
    let lab = Lab::builder()
        .shape(Impairment::half_of_rtt(Duration::from_millis(130)))
        .start()?;
    let report = preflight(&lab, &["-o", "json"])?.report()?;
    assert_eq!(report.verdict(), "fail");
    let failed = report.findings("fail");
    assert_eq!(failed.len(), 3, "one per member: {failed:?}");
    for finding in failed {
        assert_eq!(
            (&finding["measure"], &finding["limit_us"]),
            (&"path".into(), &100_000.into()),
            "{finding}"
        );
        let value = finding["value_us"].as_u64().unwrap_or_default();
        // Less than a round trip more: it is one of them that is reported.
        assert!((129_000..200_000).contains(&value), "{finding}");
        assert!(
            finding["source"]
                .as_str()
                .is_some_and(|source| source.contains("election")),
            "{finding}"
        );
    }
    let table = preflight(&lab, &[])?;
    assert_eq!(table.code, Some(3));
    assert!(
        table.stdout.contains("100 ms") && table.stdout.contains("election"),
        "{}",
        table.stdout
    );
    Ok(())
}

#[test]
fn a_warning_is_shown_and_passes() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd"])? else {
        return Ok(());
    };
    let lab = Lab::builder()
        .shape(Impairment::half_of_rtt(Duration::from_millis(70)))
        .start()?;
    let run = preflight(&lab, &["-o", "json"])?;
    let report = run.report()?;
    assert_eq!((run.code, report.verdict()), (Some(0), "warn"));
    assert!(
        report
            .findings("warn")
            .iter()
            .any(|finding| finding["limit_us"] == 50_000),
        "{report:?}"
    );
    assert!(report.findings("fail").is_empty(), "{report:?}");
    Ok(())
}

#[test]
fn lost_syns_are_counted_and_do_not_spoil_the_handshake() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd"])? else {
        return Ok(());
    };
    let lab = Lab::builder()
        .shape(Impairment::half_of_rtt(Duration::from_millis(10)))
        .start()?;
    let member = &lab.member_nodes[1];
    lab.link
        .drop_segments(joinprobe_lab::link::DropRule::syn(1..=1).of_server(member.v4.into()));
    let report = preflight(&lab, &["-o", "json"])?.report()?;
    let target = report.target(member.at(joinprobe_lab::etcd::CLIENT_PORT))?;
    assert_eq!(target.number("/syn_retransmits")?, 1);
    assert_eq!(
        target.number("/handshake/count")?,
        0,
        "a retransmitted SYN gives no handshake sample"
    );
    assert!(target.number("/connect/p50_us")? >= 1_000_000);
    // Nothing of the second that the SYN took.
    assert!(target.number("/path/p50_us")? < 500_000);
    assert_eq!(report.verdict(), "warn");
    Ok(())
}
