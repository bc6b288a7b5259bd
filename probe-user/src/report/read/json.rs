//! A JSON line of schema joinprobe/v1.

use std::time::{Duration, SystemTime};

use probe_common::cells::Measure;
use serde::Deserialize;

use super::{Verdict, hdr};
use crate::report::record::{Place, Record, Samples, Values};

/// What a line holds.
pub(super) enum Line {
    /// One interval.
    Interval { node: String, records: Vec<Record> },
    /// A whole run; with its intervals in the same file, its samples would be counted twice.
    Verdict {
        verdict: Verdict,
        records: Vec<Record>,
    },
    /// An event, or a kind of line that came later than this version.
    Other,
}

/// The fields that are read; others may be there.
#[derive(Deserialize)]
struct Fields {
    schema: String,
    kind: String,
    #[serde(default)]
    time: String,
    #[serde(default)]
    node: String,
    #[serde(default)]
    verdict: String,
    phase: Option<String>,
    interval_us: Option<u64>,
    duration_us: Option<u64>,
    #[serde(default)]
    targets: Vec<Target>,
    #[serde(default)]
    findings: Vec<Finding>,
}

#[derive(Deserialize)]
struct Finding {
    state: String,
    text: String,
}

#[derive(Deserialize)]
struct Target {
    role: String,
    target: String,
    #[serde(default)]
    side: String,
    process: Option<Process>,
    #[serde(default)]
    handshake: Measured,
    #[serde(default)]
    path: Measured,
    #[serde(default)]
    connect: Measured,
    #[serde(default)]
    segment: Measured,
    #[serde(default)]
    segment_min: Measured,
    #[serde(default)]
    sampled: Sampled,
    #[serde(default)]
    findings: Vec<Finding>,
}

/// Connections that were only looked at.
#[derive(Default, Deserialize)]
struct Sampled {
    #[serde(default)]
    smoothed: Measured,
    #[serde(default)]
    minimum: Measured,
}

#[derive(Deserialize)]
struct Process {
    name: String,
}

#[derive(Default, Deserialize)]
struct Measured {
    count: u64,
    min_us: Option<u64>,
    max_us: Option<u64>,
    hdr: Option<String>,
}

impl Target {
    fn measured(&self, values: Values) -> &Measured {
        match values {
            Values::Samples(Measure::Handshake) => &self.handshake,
            Values::Samples(Measure::Path) => &self.path,
            Values::Samples(Measure::Connect) => &self.connect,
            Values::Samples(Measure::Segment) => &self.segment,
            Values::Samples(Measure::SegmentMin) => &self.segment_min,
            Values::SampledSmoothed => &self.sampled.smoothed,
            Values::SampledMinimum => &self.sampled.minimum,
        }
    }
}

/// Reads one line.
///
/// # Errors
/// One clause saying what is wrong with it.
pub(super) fn line(text: &str) -> Result<Line, String> {
    let fields: Fields = serde_json::from_str(text).map_err(|error| {
        let reason = error.to_string();
        // serde counts lines within this one; the file's line is named by the caller.
        let reason = reason
            .rsplit_once(" at line ")
            .map_or(reason.as_str(), |(reason, _)| reason);
        format!(
            "it is no joinprobe record: {reason} (column {})",
            error.column()
        )
    })?;
    if fields.schema != "joinprobe/v1" {
        return Err(format!(
            "its schema is `{}`, this version reads joinprobe/v1",
            fields.schema
        ));
    }
    match fields.kind.as_str() {
        "interval" => Ok(Line::Interval {
            records: records(&fields)?,
            node: fields.node,
        }),
        "verdict" => Ok(Line::Verdict {
            records: records(&fields)?,
            verdict: Verdict {
                reason: reason(&fields),
                node: fields.node,
                time: fields.time,
                verdict: fields.verdict,
            },
        }),
        _ => Ok(Line::Other),
    }
}

/// The first finding that is as bad as the verdict, and whose it is; empty for a pass.
fn reason(fields: &Fields) -> String {
    let as_bad = |finding: &&Finding| finding.state == fields.verdict;
    if fields.verdict == "pass" {
        return String::new();
    }
    if let Some(finding) = fields.findings.iter().find(as_bad) {
        return finding.text.clone();
    }
    fields
        .targets
        .iter()
        .find_map(|target| Some((target, target.findings.iter().find(as_bad)?)))
        .map(|(target, finding)| {
            if finding.text.starts_with(&target.target) {
                format!("{} {}", target.role, finding.text)
            } else {
                format!("{} {}: {}", target.role, target.target, finding.text)
            }
        })
        .unwrap_or_default()
}

fn records(fields: &Fields) -> Result<Vec<Record>, String> {
    let end = humantime::parse_rfc3339_weak(&fields.time)
        .map_err(|error| format!("its time `{}` is none: {error}", fields.time))?;
    let length = Duration::from_micros(fields.interval_us.or(fields.duration_us).unwrap_or(0));
    let start = end.checked_sub(length).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut records = Vec::new();
    for target in &fields.targets {
        for values in Values::all() {
            let measured = target.measured(values);
            if measured.count == 0 {
                continue;
            }
            records.push(Record {
                place: Place {
                    values,
                    role: target.role.clone(),
                    target: target.target.clone(),
                    side: target.side.clone(),
                    process: target
                        .process
                        .as_ref()
                        .map(|process| process.name.clone())
                        .unwrap_or_default(),
                    node: fields.node.clone(),
                },
                phase: fields.phase.clone(),
                start,
                length,
                samples: samples(measured)?,
            });
        }
    }
    Ok(records)
}

fn samples(measured: &Measured) -> Result<Samples, String> {
    if let Some(hdr) = &measured.hdr {
        return hdr::decode(hdr).map(Samples::Whole);
    }
    match (measured.min_us, measured.max_us) {
        (Some(min), Some(max)) => Ok(Samples::Extremes {
            count: measured.count,
            min,
            max,
        }),
        _ => Err("a measure has samples but no quantiles".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_file_has_line_numbers() {
        let reason = line(r#"{"schema": 7}"#).map(|_| ()).unwrap_err();
        assert!(
            reason.contains("column") && !reason.contains("line"),
            "{reason}"
        );
    }
}
