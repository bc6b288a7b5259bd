//! A measurement in a few words.

use super::{DistributionReport, MeasuredReport};
use crate::verdict::text;

/// Connections, those that failed, and the median handshake where there is one.
pub(super) fn connections(measured: &MeasuredReport) -> String {
    let failed: u64 = measured
        .connections
        .by_outcome()
        .into_iter()
        .filter(|(outcome, _)| !matches!(*outcome, "established" | "reset"))
        .map(|(_, count)| count)
        .sum();
    format!(
        "{}, {failed} failed{}",
        text::count(measured.connections.established, "connection"),
        median("handshake", &measured.handshake)
    )
}

/// The same of a process, with its segments.
pub(super) fn process(measured: &MeasuredReport) -> String {
    format!(
        "process {}: {}{}",
        measured.process_name().unwrap_or("not known"),
        connections(measured),
        median("segment", &measured.segment)
    )
}

fn median(measure: &str, distribution: &DistributionReport) -> String {
    distribution
        .quantiles()
        .map_or_else(String::new, |quantiles| {
            format!(
                ", {measure} p50 {} (n={})",
                text::ms(quantiles.p50_us),
                distribution.count()
            )
        })
}
