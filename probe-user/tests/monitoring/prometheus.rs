//! A real Prometheus scrapes the endpoint and comes to the numbers that the JSON has.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use joinprobe_lab::can_run;
use joinprobe_lab::monitoring::{Prometheus, Sample, get, promtool};
use probe_user::output::{DistributionReport, Exporter as _, IntervalReport, Listen};

use crate::samples;

/// Serves `report` on a free port until the process ends.
pub(crate) fn serve(report: IntervalReport) -> Result<SocketAddr> {
    let (told, address) = std::sync::mpsc::channel();
    thread::spawn(move || -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let mut listen = Listen::new(any, Duration::from_mins(1));
            listen.start()?;
            listen.interval(&report)?;
            told.send(listen.bound().context("not listening")?)?;
            std::future::pending().await
        })
    });
    Ok(address.recv()?)
}

/// The sample of the series about `target`.
fn of<'a>(samples: &'a [Sample], target: &str) -> Result<&'a Sample> {
    samples
        .iter()
        .find(|sample| {
            sample
                .labels
                .get("target")
                .is_some_and(|label| label == target)
        })
        .with_context(|| format!("{target} is not among {samples:?}"))
}

/// Quantiles that Prometheus computes of `expression`, against those in the JSON; they may be a factor of `width`
/// apart, which is one bucket.
fn compare(
    prometheus: &mut Prometheus,
    report: &IntervalReport,
    expression: impl Fn(&str) -> String,
    width: f64,
) -> Result<()> {
    type Measure = fn(&probe_user::output::MeasuredReport) -> &DistributionReport;
    let measures: [(&str, Measure); 3] = [
        ("joinprobe_tcp_handshake_rtt_seconds", |m| &m.handshake),
        ("joinprobe_tcp_segment_rtt_seconds", |m| &m.segment),
        ("joinprobe_tcp_connect_seconds", |m| &m.connect),
    ];
    for (name, measure) in measures {
        for quantile in [0.5, 0.9, 0.99] {
            let query = format!("histogram_quantile({quantile}, {})", expression(name));
            let found = prometheus.wait_for(&query)?;
            for target in &report.totals {
                let json = serde_json::to_value(measure(target))?;
                let field = format!("p{}_us", quantile * 100.0);
                let ours = json[&field].as_f64().context("no quantile")? / 1e6;
                let theirs = of(&found, &target.target)?.value;
                let ratio = (theirs / ours).max(ours / theirs);
                ensure!(
                    ratio <= width,
                    "{name} {quantile} of {}: Prometheus {theirs}, JSON {ours}",
                    target.target
                );
            }
        }
    }
    Ok(())
}

#[test]
fn classic_histograms_and_counters_agree_with_the_json() -> Result<()> {
    if !can_run(&["prometheus"])? {
        return Ok(());
    }
    let report = samples::interval()?;
    let mut prometheus = Prometheus::start(serve(report.clone())?, false)?;
    let buckets = |name: &str| format!("{name}_bucket");
    compare(&mut prometheus, &report, buckets, 2.0)?;
    let connections = prometheus.query("joinprobe_connections_total{outcome=\"refused\"}")?;
    let lost = prometheus.query("joinprobe_tcp_retransmits_total")?;
    let verdict = prometheus.query("joinprobe_verdict == 1")?;
    for target in &report.totals {
        let connections = of(&connections, &target.target)?;
        assert!((connections.value - 2.0).abs() < f64::EPSILON);
        for label in ["role", "side"] {
            assert!(connections.labels.contains_key(label), "{connections:?}");
        }
        assert!((of(&lost, &target.target)?.value - 7.0).abs() < f64::EPSILON);
    }
    assert_eq!(verdict.len(), 1);
    assert_eq!(verdict[0].labels["state"], "warn");
    Ok(())
}

#[test]
fn native_histograms_agree_more_closely() -> Result<()> {
    if !can_run(&["prometheus"])? {
        return Ok(());
    }
    let report = samples::interval()?;
    let mut prometheus = Prometheus::start(serve(report.clone())?, true)?;
    // One bucket is 2^(2^-5); our own grouping adds 0.8 %.
    let width = 2_f64.powf(1.0 / 32.0) * 1.008;
    compare(&mut prometheus, &report, str::to_owned, width)
}

#[test]
fn promtool_accepts_the_page() -> Result<()> {
    if !can_run(&["promtool"])? {
        return Ok(());
    }
    for report in [samples::interval()?, samples::by_process()?] {
        let page = get(serve(report)?, "/metrics")?;
        let complaints = promtool(&["check", "metrics"], &page)?;
        assert_eq!(complaints, "");
    }
    Ok(())
}

#[test]
fn processes_are_a_label() -> Result<()> {
    if !can_run(&["prometheus"])? {
        return Ok(());
    }
    // In text or OpenMetrics, and in protobuf.
    for native in [false, true] {
        let mut prometheus = Prometheus::start(serve(samples::by_process()?)?, native)?;
        let all = "joinprobe_tcp_segments_out_total{role=\"apiserver\"}";
        let mut found = prometheus.wait_for(all)?;
        found.sort_by(|a, b| a.labels.get("process").cmp(&b.labels.get("process")));
        let names: Vec<_> = found
            .iter()
            .map(|sample| sample.labels.get("process").map(String::as_str))
            .collect();
        assert_eq!(names, [None, Some(samples::ODD), Some("etcd")]);
        let sum = prometheus.query(&format!("sum by (target) ({all})"))?;
        assert!((sum[0].value - 2700.0).abs() < f64::EPSILON, "{sum:?}");
    }
    Ok(())
}
