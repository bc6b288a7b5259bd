//! The metrics by name. docs/monitoring.md explains each; names, labels and units never change with kernel or mode.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, LabelSetEncoder, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use super::earlier;
use super::snapshot::{Labels, Snapshot, Target};

/// Encodes a [`Snapshot`].
#[derive(Debug)]
pub(super) struct Families(pub(super) Arc<Snapshot>);

/// Measure, metric name without prefix and unit, help.
const HISTOGRAMS: [(&str, &str, &str); 5] = [
    (
        "handshake",
        "tcp_handshake_rtt",
        "SYN to SYN-ACK round trip of connections whose SYN was sent once: the network alone",
    ),
    (
        "path",
        "tcp_path_rtt",
        "Round trip of joinprobe's own paced segments: the network alone",
    ),
    (
        "segment",
        "tcp_segment_rtt",
        "The kernel's round-trip samples of observed segments, with the peer's delayed ACK and thinking time",
    ),
    (
        "segment_min",
        "tcp_segment_min_rtt",
        "Smallest segment round trip of each connection within one report interval: close to the network alone",
    ),
    (
        "connect",
        "tcp_connect",
        "connect() to ESTABLISHED, SYN retransmissions included",
    ),
];

/// Name, help and value of a counter about a target.
type TargetCounter = (&'static str, &'static str, fn(&Target) -> u64);

const TARGET_COUNTERS: [TargetCounter; 3] = [
    (
        "tcp_syn_retransmits",
        "SYNs sent again, on the server side SYN-ACKs",
        |target| target.syn_retransmits,
    ),
    (
        "tcp_retransmits",
        "Segments sent again after the connection was established",
        |target| target.retransmits,
    ),
    (
        "tcp_segments_out",
        "Data segments sent, retransmissions included",
        |target| target.segments_out,
    ),
];

/// Name, help and value of a value about the observer.
type ObserverValue = (&'static str, &'static str, fn(&Snapshot) -> u64);

const OBSERVER_COUNTERS: [ObserverValue; 6] = [
    (
        "connections_seen",
        "Connections seen on watched ports",
        |at| at.observer.flows_seen,
    ),
    (
        "connections_untracked",
        "Connections the kernel had no memory to follow; their samples are missing",
        |at| at.observer.flows_untracked,
    ),
    (
        "events_lost",
        "Events that found the ring buffer full",
        |at| at.observer.events_lost,
    ),
    (
        "events_suppressed",
        "Events left out by the rate limit",
        |at| at.observer.events_suppressed,
    ),
    (
        "slots_exhausted",
        "Connections counted under a shared target because no histogram slot was left",
        |at| at.observer.slots_exhausted,
    ),
    (
        "rtt_disagreements",
        "Round-trip samples whose two ways of reading them disagreed",
        |at| at.observer.raw_disagreements,
    ),
];

const STATES: [&str; 4] = ["pass", "warn", "inconclusive", "fail"];

/// A target's labels and one more.
pub(super) struct With<'a>(
    pub(super) &'a Labels,
    pub(super) &'static str,
    pub(super) &'static str,
);

impl EncodeLabelSet for With<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        self.0.encode(encoder)?;
        [(self.1, self.2)].encode(encoder)
    }
}

impl EncodeLabelSet for Labels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        [
            ("role", self.role),
            ("target", self.target.as_str()),
            ("side", self.side),
        ]
        .encode(encoder)?;
        match &self.process {
            Some(process) => [("process", process.as_str())].encode(encoder),
            None => Ok(()),
        }
    }
}

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let at = self.0.as_ref();
        histograms(at, &mut encoder)?;
        if !at.targets.is_empty() {
            counters(at, &mut encoder)?;
        }
        earlier::encode(at, &mut encoder)?;
        probes(at, &mut encoder)?;
        verdicts(at, &mut encoder)?;
        for (name, help, value) in OBSERVER_COUNTERS {
            family(&mut encoder, name, help, None, MetricType::Counter)?
                .encode_counter::<NoLabelSet, _, f64>(&value(at), None)?;
        }
        observer(at, &mut encoder)
    }
}

pub(super) fn family<'a>(
    encoder: &'a mut DescriptorEncoder<'_>,
    name: &'a str,
    help: &str,
    unit: Option<&'a Unit>,
    kind: MetricType,
) -> Result<MetricEncoder<'a>, fmt::Error> {
    encoder.encode_descriptor(name, help, unit, kind)
}

pub(super) fn counter(
    family: &mut MetricEncoder<'_>,
    labels: &impl EncodeLabelSet,
    value: u64,
) -> fmt::Result {
    family
        .encode_family(labels)?
        .encode_counter::<NoLabelSet, _, f64>(&value, None)
}

fn histograms(at: &Snapshot, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    for (measure, name, help) in HISTOGRAMS {
        let mut series = at
            .targets
            .iter()
            .flat_map(|target| {
                target
                    .histograms
                    .iter()
                    .map(|(name, buckets)| (&target.labels, *name, buckets))
            })
            .filter(|(_, name, _)| *name == measure)
            .peekable();
        if series.peek().is_none() {
            continue;
        }
        let mut family = family(
            encoder,
            name,
            help,
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        for (labels, _, buckets) in series {
            buckets.encode(&mut family.encode_family(labels)?)?;
        }
    }
    Ok(())
}

fn counters(at: &Snapshot, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help =
        "Connection attempts by outcome; reset counts established connections that a RST ended";
    let mut connections = family(encoder, "connections", help, None, MetricType::Counter)?;
    for target in &at.targets {
        for (outcome, count) in target.connections.by_outcome() {
            let labels = With(&target.labels, "outcome", outcome);
            counter(&mut connections, &labels, count)?;
        }
    }
    for (name, help, value) in TARGET_COUNTERS {
        let mut family = family(encoder, name, help, None, MetricType::Counter)?;
        for target in &at.targets {
            counter(&mut family, &target.labels, value(target))?;
        }
    }
    Ok(())
}

fn probes(at: &Snapshot, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    for (name, help, etcd) in [
        (
            "etcd_probe",
            "Stages of joinprobe's own connection to etcd; server is the request without the network",
            true,
        ),
        (
            "apiserver_probe",
            "Stages of joinprobe's own connection to an API server",
            false,
        ),
    ] {
        let mut probes = at
            .probes
            .iter()
            .filter(|probe| probe.labels.role.starts_with("etcd") == etcd)
            .peekable();
        if probes.peek().is_none() {
            continue;
        }
        let mut family = family(encoder, name, help, Some(&Unit::Seconds), MetricType::Gauge)?;
        for probe in probes {
            for &(stage, seconds) in &probe.stages {
                let labels = With(&probe.labels, "stage", stage);
                family.encode_family(&labels)?.encode_gauge(&seconds)?;
            }
        }
    }
    Ok(())
}

fn verdicts(at: &Snapshot, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    if let Some(verdict) = at.verdict {
        let help =
            "1 for the state of the run's verdict, or of its last interval, 0 for the others";
        let mut family = family(encoder, "verdict", help, None, MetricType::Gauge)?;
        for state in STATES {
            family
                .encode_family(&[("state", state)])?
                .encode_gauge(&u32::from(state == verdict))?;
        }
    }
    if at.targets.iter().any(|target| target.verdict.is_some()) {
        let help = "1 for the state of the target's last verdict, 0 for the others";
        let mut family = family(encoder, "target_verdict", help, None, MetricType::Gauge)?;
        // A verdict is the target's, and a series may be exposed only once.
        let mut told: Vec<Labels> = Vec::new();
        for target in &at.targets {
            let Some(verdict) = target.verdict else {
                continue;
            };
            let labels = target.labels.of_target();
            if told.contains(&labels) {
                continue;
            }
            for state in STATES {
                let labels = With(&labels, "state", state);
                family
                    .encode_family(&labels)?
                    .encode_gauge(&u32::from(state == verdict))?;
            }
            told.push(labels);
        }
    }
    Ok(())
}

fn observer(at: &Snapshot, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let gauge = MetricType::Gauge;
    let observer = &at.observer;
    family(encoder, "slots_used", "Histogram slots in use", None, gauge)?
        .encode_gauge(&observer.slots_used)?;
    let help = "Resident memory after attaching";
    family(encoder, "resident_memory", help, Some(&Unit::Bytes), gauge)?
        .encode_gauge(&observer.rss_bytes)?;
    if let Some(since) = at
        .time
        .and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok())
    {
        let help = "When the values were last brought up to date, seconds since 1970";
        family(
            encoder,
            "last_report_timestamp",
            help,
            Some(&Unit::Seconds),
            gauge,
        )?
        .encode_gauge(&since.as_secs_f64())?;
    }
    // Gauges of value 1, not the type `info`, which node_exporter's textfile reader refuses.
    let help = "Always 1; the kernel, where its round-trip samples come from, and the node's name";
    let labels = [
        ("kernel", observer.kernel.as_str()),
        ("rtt_source", observer.rtt_source.as_str()),
        ("node", at.node.as_str()),
    ];
    family(encoder, "observer_info", help, None, gauge)?
        .encode_family(&labels)?
        .encode_gauge(&1_u32)?;
    let labels = [("version", env!("CARGO_PKG_VERSION"))];
    family(
        encoder,
        "build_info",
        "Always 1; joinprobe's version",
        None,
        gauge,
    )?
    .encode_family(&labels)?
    .encode_gauge(&1_u32)
}
