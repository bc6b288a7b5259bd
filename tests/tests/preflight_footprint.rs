//! What a preflight leaves on the wire and in etcd: one connection per target, one read, nothing written.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use joinprobe_lab::capture::Side;
use joinprobe_lab::etcd::{CLIENT_PORT, Metrics};
use joinprobe_lab::lab::APISERVER_PORT;
use joinprobe_lab::link::DEVICE;
use joinprobe_lab::{Capture, Impairment, Lab, attempts, on_time, take_turn};

/// Calls per method over all members.
fn calls(metrics: &[Metrics]) -> BTreeMap<String, u64> {
    let mut sum = BTreeMap::new();
    for (method, count) in metrics.iter().flat_map(Metrics::calls) {
        *sum.entry(method).or_insert(0) += count;
    }
    sum
}

fn committed(metrics: &[Metrics]) -> Vec<Option<u64>> {
    metrics.iter().map(Metrics::proposals_committed).collect()
}

#[test]
fn one_syn_per_target_no_reset_and_one_read() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd", "tcpdump"])? else {
        return Ok(());
    };
    let lab = Lab::builder()
        .shape(Impairment::half_of_rtt(Duration::from_millis(10)))
        .start()?;
    attempts(3, || one_preflight(&lab))
}

fn one_preflight(lab: &Lab) -> Result<()> {
    let before = lab.etcd.metrics()?;
    let asked_before = lab.apiserver.requests().len();
    let capture = Capture::start(&lab.joiner.namespace, DEVICE)?;
    let started = Instant::now();
    let run = lab.run_joinprobe(lab.preflight_args())?;
    // A farewell may still be under way, and RSTs would follow it.
    std::thread::sleep(Duration::from_millis(200));
    let took = started.elapsed();
    let recording = capture.stop()?;
    let after = lab.etcd.metrics()?;
    assert_eq!(run.code, Some(0), "{run:?}");

    let flows = recording.flows();
    assert_eq!(flows.len(), 4, "{flows:#?}");
    let members = lab.member_nodes.iter().map(|node| node.at(CLIENT_PORT));
    for target in members.chain([lab.apiserver_node.at(APISERVER_PORT)]) {
        let flows = recording.flows_to(target);
        assert_eq!(flows.len(), 1, "{target}");
        assert_eq!(flows[0].resets_by(Side::Client), 0, "{target}");
        // Either may be sent again where its answer is late.
        let once = (flows[0].syns(), flows[0].fins_by(Side::Client));
        on_time(once == (1, 1), || format!("{target}: {once:?}"))?;
    }

    let mut expected = calls(&before);
    *expected.entry("Range".to_owned()).or_insert(0) += 1;
    assert_eq!(calls(&after), expected, "one Range and nothing else");
    let revisions = |metrics: &[Metrics]| metrics.iter().map(Metrics::revision).collect::<Vec<_>>();
    assert_eq!(revisions(&before), revisions(&after));
    // The same time with nobody there, for comparison.
    std::thread::sleep(took);
    let idle = lab.etcd.metrics()?;
    let grown = |from: &[Metrics], to: &[Metrics]| {
        committed(from)
            .into_iter()
            .zip(committed(to))
            .map(|(a, b)| b.unwrap_or(0) - a.unwrap_or(0))
            .collect::<Vec<_>>()
    };
    // A cluster that is held up elects another leader.
    let (with, without) = (grown(&before, &after), grown(&after, &idle));
    on_time(with == without, || {
        format!("{with:?} proposals, {without:?} when idle")
    })?;

    let asked: Vec<_> = lab.apiserver.requests().split_off(asked_before);
    let asked: Vec<(&str, &str, bool)> = asked
        .iter()
        .map(|request| (&*request.method, &*request.path, request.authorized))
        .collect();
    assert_eq!(asked, [("GET", "/readyz", false)]);
    Ok(())
}

#[test]
fn each_member_is_read_when_asked_for() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd"])? else {
        return Ok(());
    };
    let lab = Lab::builder().start()?;
    let before = calls(&lab.etcd.metrics()?);
    let mut args = lab.preflight_args();
    args.push("--probe-each-member".into());
    let run = lab.run_joinprobe(args)?;
    assert_eq!(run.code, Some(0), "{run:?}");
    let mut expected = before;
    *expected.entry("Range".to_owned()).or_insert(0) += 3;
    assert_eq!(calls(&lab.etcd.metrics()?), expected);
    Ok(())
}
