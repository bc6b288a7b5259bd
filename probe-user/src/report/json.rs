//! The report as one line of JSON.

use std::io::{self, Write};
use std::time::SystemTime;

use serde::Serialize;

use super::merge::{Group, Merged, Sum};
use super::read::Verdict;
use super::record::Place;
use super::text::Origin;
use crate::output::{Kind, Process, RecommendationReport, Schema, Timestamp};
use crate::verdict::Recommendation;

#[derive(Serialize)]
struct Line<'a> {
    schema: Schema,
    kind: Kind,
    time: Timestamp,
    /// Every node's name, for readers that know only one.
    node: String,
    nodes: Vec<&'a str>,
    files: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    begin: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<Timestamp>,
    /// Measurements that were in more than one file, counted once.
    duplicates: u64,
    verdicts: &'a [Verdict],
    measures: Vec<Row<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recommendation: Option<RecommendationReport>,
}

/// One measure of one target.
#[derive(Serialize)]
struct Row<'a> {
    measure: &'static str,
    role: &'a str,
    target: &'a str,
    side: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<Process>,
    #[serde(skip_serializing_if = "str::is_empty")]
    node: &'a str,
    #[serde(flatten)]
    samples: Samples,
    /// The parts of it that fell into phases of a join.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    phases: Vec<Phase<'a>>,
}

#[derive(Serialize)]
struct Phase<'a> {
    phase: &'a str,
    #[serde(flatten)]
    samples: Samples,
}

/// Without a whole distribution there are no quantiles.
#[derive(Serialize)]
struct Samples {
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p50_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p90_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_us: Option<u64>,
}

impl<'a> Row<'a> {
    fn new(place: &'a Place, group: &'a Group) -> Self {
        let phases = group.phases.iter();
        Self {
            measure: place.values.name(),
            role: &place.role,
            target: &place.target,
            side: &place.side,
            process: (!place.process.is_empty()).then(|| Process {
                name: place.process.clone(),
                pid: None,
            }),
            node: &place.node,
            samples: Samples::of(&group.total),
            phases: phases
                .map(|(phase, sum)| Phase {
                    phase,
                    samples: Samples::of(sum),
                })
                .collect(),
        }
    }
}

impl Samples {
    fn of(sum: &Sum) -> Self {
        let extremes = sum.extremes();
        Self {
            count: sum.count(),
            min_us: extremes.map(|(min, _)| min),
            p50_us: sum.quantile(0.5),
            p90_us: sum.quantile(0.9),
            p99_us: sum.quantile(0.99),
            max_us: extremes.map(|(_, max)| max),
        }
    }
}

/// Writes the line.
///
/// # Errors
/// Those of `out`.
pub(super) fn write(
    merged: &Merged,
    origin: &Origin,
    recommendation: Option<&Recommendation>,
    time: SystemTime,
    out: &mut dyn Write,
) -> io::Result<()> {
    let nodes: Vec<&str> = merged.nodes.iter().map(String::as_str).collect();
    let line = Line {
        schema: Schema::V1,
        kind: Kind::Report,
        time: Timestamp(time),
        node: nodes.join(", "),
        nodes,
        files: origin.files,
        begin: merged.span.map(|(begin, _)| Timestamp(begin)),
        end: merged.span.map(|(_, end)| Timestamp(end)),
        duplicates: merged.duplicates,
        verdicts: &origin.verdicts,
        measures: merged
            .groups
            .iter()
            .map(|(place, group)| Row::new(place, group))
            .collect(),
        recommendation: recommendation.map(RecommendationReport::new),
    };
    serde_json::to_writer(&mut *out, &line)?;
    writeln!(out)?;
    out.flush()
}
