//! The report for people.

use std::io::{self, Write};

use super::bars;
use super::merge::{Merged, Sum};
use super::read::Verdict;
use super::record::Place;
use crate::output::{Marks, Timestamp};
use crate::verdict::Recommendation;

/// What was read beside the measurements.
#[derive(Debug, Default)]
pub(super) struct Origin {
    pub(super) files: usize,
    pub(super) verdicts: Vec<Verdict>,
    /// What follows for the cluster, a sentence each.
    pub(super) advice: Vec<String>,
}

/// What to say of raft timing, and of what was not measured.
pub(super) fn advice(recommendation: Option<&Recommendation>) -> Vec<String> {
    let mut advice = match recommendation {
        None => vec!["raft timing: no etcd member's RTT is in the files".to_owned()],
        Some(made) => {
            let finding = &made.finding;
            let mut advice = vec![format!("raft timing: {}", finding.text)];
            if !finding.hint.is_empty() {
                advice.push(finding.hint.clone());
            }
            advice.push(format!("rule: {}", finding.source));
            advice
        }
    };
    advice.push("throughput was not measured: that would put load on the cluster".to_owned());
    advice
}

/// A target's name with what tells it apart from others of the same address. Where processes are told apart anywhere
/// (`by_process`), it is said of whom that is not known.
pub(super) fn name(place: &Place, by_process: bool) -> String {
    let mut name = format!("{} {}", place.role, place.target);
    if place.side != "client" {
        name = format!("{name} ({} side)", place.side);
    }
    if !place.process.is_empty() {
        name = format!("{name} by {}", place.process);
    } else if by_process && place.side == "client" {
        name = format!("{name} (process not known)");
    }
    if !place.node.is_empty() {
        name = format!("{} -> {name}", place.node);
    }
    clean(&name)
}

/// Text without control characters: the file may hold anything, and a terminal obeys them.
fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// Microseconds as people read them, to three digits.
pub(super) fn duration(micros: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "shown to three digits")]
    let ms = micros as f64 / 1e3;
    match micros {
        0..1_000 => format!("{micros} us"),
        1_000..10_000 => format!("{ms:.2} ms"),
        10_000..100_000 => format!("{ms:.1} ms"),
        100_000..10_000_000 => format!("{ms:.0} ms"),
        _ => format!("{:.1} s", ms / 1e3),
    }
}

/// Writes the report.
///
/// # Errors
/// Those of `out`.
pub(super) fn write(
    merged: &Merged,
    origin: &Origin,
    marks: Marks,
    out: &mut dyn Write,
) -> io::Result<()> {
    head(merged, origin, out)?;
    let by_process = merged.is_by_process();
    let width = merged
        .groups
        .iter()
        .flat_map(|(place, group)| {
            let phases = group
                .phases
                .iter()
                .map(|(phase, _)| phase.chars().count() + 8);
            phases.chain([name(place, by_process).chars().count()])
        })
        .max()
        .unwrap_or(0);
    let mut values = None;
    for (place, group) in &merged.groups {
        if values != Some(place.values) {
            values = Some(place.values);
            writeln!(out, "\n{}: {}", place.values.name(), place.values.meaning())?;
            let [n, min, p50, p90, p99, max] = ["n", "min", "p50", "p90", "p99", "max"];
            writeln!(
                out,
                "  {:width$} {n:>9} {min:>9} {p50:>9} {p90:>9} {p99:>9} {max:>9}",
                ""
            )?;
        }
        row(out, &name(place, by_process), width, &group.total)?;
        for (phase, sum) in &group.phases {
            row(out, &clean(&format!("  phase {phase}")), width, sum)?;
        }
    }
    for (title, sum) in by_role(merged) {
        bars::write(&title, &sum.distribution, marks, out)?;
    }
    writeln!(out)?;
    for sentence in &origin.advice {
        writeln!(out, "{}", clean(sentence))?;
    }
    out.flush()
}

fn head(merged: &Merged, origin: &Origin, out: &mut dyn Write) -> io::Result<()> {
    let plural = if origin.files == 1 { "" } else { "s" };
    let nodes: Vec<String> = merged.nodes.iter().map(|node| clean(node)).collect();
    write!(
        out,
        "{} file{plural}, node {}",
        origin.files,
        nodes.join(", ")
    )?;
    if let Some((start, end)) = merged.span {
        write!(out, ", {} to {}", Timestamp(start), Timestamp(end))?;
    }
    writeln!(out)?;
    for verdict in &origin.verdicts {
        let Verdict {
            node,
            time,
            verdict,
            reason,
        } = verdict;
        let mut line = format!("verdict of {node} at {time}: {verdict}");
        if !reason.is_empty() {
            line = format!("{line}: {reason}");
        }
        writeln!(out, "{}", clean(&line))?;
    }
    if merged.duplicates > 0 {
        writeln!(
            out,
            "{} measurements were in more than one file and are counted once",
            merged.duplicates
        )?;
    }
    let beside: u64 = merged
        .groups
        .values()
        .filter_map(|group| group.total.beside)
        .map(|(count, ..)| count)
        .sum();
    if beside > 0 {
        writeln!(
            out,
            "{beside} samples came without their distribution (no `hdr` field): they count in n, min and max, not in quantiles"
        )?;
    }
    Ok(())
}

fn row(out: &mut dyn Write, name: &str, width: usize, sum: &Sum) -> io::Result<()> {
    let quantile = |quantile| sum.quantile(quantile).map_or("-".to_owned(), duration);
    let (min, max) = sum.extremes().unwrap_or_default();
    let (p50, p90, p99) = (quantile(0.5), quantile(0.9), quantile(0.99));
    writeln!(
        out,
        "  {name:width$} {:>9} {:>9} {p50:>9} {p90:>9} {p99:>9} {:>9}",
        sum.count(),
        duration(min),
        duration(max)
    )
}

/// Every kind of values of every role, its targets put together.
fn by_role(merged: &Merged) -> Vec<(String, Sum)> {
    let mut sums: Vec<(String, Sum)> = Vec::new();
    for (place, group) in &merged.groups {
        let side = if place.side == "client" {
            ""
        } else {
            ", server side"
        };
        let title = format!("{} of {}{side}", place.values.name(), clean(&place.role));
        let samples = super::record::Samples::Whole(group.total.distribution.clone());
        if let Some((_, sum)) = sums.iter_mut().find(|(known, _)| *known == title) {
            sum.add(&samples);
        } else {
            let mut sum = Sum::default();
            sum.add(&samples);
            sums.push((title, sum));
        }
    }
    sums
}
