//! `kind: "interval"`: what happened in one report interval of a run that goes on.

use std::time::{Duration, SystemTime};

use serde::Serialize;

use super::{FindingReport, Kind, MeasuredReport, ObserverReport, Schema, TargetReport, Timestamp};
use crate::measure::{TargetMeasurement, micros};
use crate::verdict::RunVerdict;

/// One report interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IntervalReport {
    /// Always [`Schema::V1`].
    pub schema: Schema,
    /// Always [`Kind::Interval`].
    pub kind: Kind,
    /// The interval's end.
    pub time: Timestamp,
    /// This node's name.
    pub node: String,
    /// How long the interval was, microseconds.
    pub interval_us: u64,
    /// Since the observer was attached, microseconds.
    pub elapsed_us: u64,
    /// The phase of the watched command that the interval lies in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// `pass`, `warn`, `inconclusive` or `fail`.
    pub verdict: &'static str,
    /// What happened in this interval, one per target that saw traffic.
    pub targets: Vec<TargetReport>,
    /// Findings about the interval as a whole.
    pub findings: Vec<FindingReport>,
    /// Everything since the observer was attached, one per target.
    pub totals: Vec<MeasuredReport>,
    /// The observer itself.
    pub observer: ObserverReport,
}

/// What an [`IntervalReport`] is made from.
#[derive(Debug)]
pub struct Interval<'a> {
    /// This node's name.
    pub node: &'a str,
    /// The interval's end.
    pub end: SystemTime,
    /// How long it was.
    pub length: Duration,
    /// Since the observer was attached.
    pub elapsed: Duration,
    /// The phase of the watched command.
    pub phase: Option<&'a str>,
    /// Only what happened in this interval.
    pub measured: Vec<TargetMeasurement>,
    /// The judgement of `measured`, in the same order.
    pub verdict: &'a RunVerdict,
    /// Everything since the observer was attached.
    pub totals: Vec<TargetMeasurement>,
    /// The observer itself.
    pub observer: ObserverReport,
}

impl IntervalReport {
    /// The written form; distributions move, they are not copied.
    #[must_use]
    pub fn new(interval: Interval<'_>) -> Self {
        let source = &interval.observer.rtt_source;
        Self {
            schema: Schema::V1,
            kind: Kind::Interval,
            time: Timestamp(interval.end),
            node: interval.node.to_owned(),
            interval_us: micros(interval.length),
            elapsed_us: micros(interval.elapsed),
            phase: interval.phase.map(str::to_owned),
            verdict: interval.verdict.verdict.name(),
            targets: interval
                .measured
                .into_iter()
                .zip(&interval.verdict.targets)
                .map(|(measurement, judged)| TargetReport::new(measurement, judged, source))
                .collect(),
            findings: interval
                .verdict
                .findings
                .iter()
                .map(FindingReport::new)
                .collect(),
            totals: interval
                .totals
                .into_iter()
                .map(|measurement| MeasuredReport::new(measurement, source))
                .collect(),
            observer: interval.observer,
        }
    }
}
