//! The data model behind every format, in the JSON shape of schema joinprobe/v1.

use serde::Serialize;

use super::{
    EtcdProbeReport, FindingReport, PhaseReport, RecommendationReport, TargetReport, Timestamp,
};
use crate::measure::TargetMeasurement;
use crate::verdict::{RunVerdict, Verdict};

/// The schema's name, in every JSON line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Schema {
    /// Version 1; fields may be added, never renamed.
    #[serde(rename = "joinprobe/v1")]
    V1,
}

/// What a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A whole run.
    Verdict,
    /// One interval of a run that goes on.
    Interval,
    /// Something that happened to one connection.
    Event,
    /// Saved measurements put together.
    Report,
    /// What the host can do.
    Doctor,
}

/// What is said about the observer itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ObserverReport {
    /// Kernel release.
    pub kernel: String,
    /// `raw`, `reconstructed`, `smoothed`, or `none` before the first sample.
    pub rtt_source: String,
    /// Events that found the ring buffer full.
    pub events_lost: u64,
    /// Events left out by the rate limit.
    pub events_suppressed: u64,
    /// Connections seen on watched ports.
    pub flows_seen: u64,
    /// Connections the kernel side had no memory to follow; their samples are missing.
    pub flows_untracked: u64,
    /// RTT samples whose two ways of reading them disagreed.
    pub raw_disagreements: u64,
    /// Histogram slots in use.
    pub slots_used: u64,
    /// Connections that got no slot of their own.
    pub slots_exhausted: u64,
    /// Resident memory after attaching, bytes.
    pub rss_bytes: u64,
    /// Highest resident memory so far, bytes.
    pub rss_peak_bytes: u64,
    /// Where the kernel side is attached.
    pub cgroup: String,
}

/// One result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Always [`Schema::V1`].
    pub schema: Schema,
    /// What this is.
    pub kind: Kind,
    /// When it was said.
    pub time: Timestamp,
    /// This node's name.
    pub node: String,
    /// `pass`, `warn`, `inconclusive` or `fail`.
    pub verdict: &'static str,
    /// How long the run took, microseconds.
    pub duration_us: u64,
    /// One per target.
    pub targets: Vec<TargetReport>,
    /// One per phase of the watched command, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseReport>,
    /// Findings about the run as a whole.
    pub findings: Vec<FindingReport>,
    /// Raft timing for what was measured; absent where no member's RTT was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<RecommendationReport>,
    /// The one etcd read; absent when none was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etcd_probe: Option<EtcdProbeReport>,
    /// The observer itself.
    pub observer: ObserverReport,
    /// The verdict, for the formats that reckon with it.
    #[serde(skip)]
    pub worst: Verdict,
}

impl Report {
    /// The report of a whole run.
    #[must_use]
    pub fn of_run(
        node: &str,
        time: std::time::SystemTime,
        duration: std::time::Duration,
        measured: &[TargetMeasurement],
        verdict: &RunVerdict,
        observer: ObserverReport,
    ) -> Self {
        Self {
            schema: Schema::V1,
            kind: Kind::Verdict,
            time: Timestamp(time),
            node: node.to_owned(),
            verdict: verdict.verdict.name(),
            duration_us: crate::measure::micros(duration),
            targets: measured
                .iter()
                .zip(&verdict.targets)
                .map(|(measurement, judged)| {
                    TargetReport::new(measurement.clone(), judged, &observer.rtt_source)
                })
                .collect(),
            phases: Vec::new(),
            findings: verdict.findings.iter().map(FindingReport::new).collect(),
            recommendation: verdict
                .recommendation
                .as_ref()
                .map(RecommendationReport::new),
            etcd_probe: measured.iter().find_map(EtcdProbeReport::of),
            observer,
            worst: verdict.verdict,
        }
    }
}
