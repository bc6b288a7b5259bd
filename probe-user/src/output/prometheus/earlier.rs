//! Metrics about connections that were there before the observer. What is only sampled has names and a `source` of its own.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use super::buckets::Buckets;
use super::families::{With, counter, family};
use super::snapshot::{Sampled, Snapshot};
use crate::output::sampled::SOURCE;

/// Name, help, and which distribution.
type SampledHistogram = (&'static str, &'static str, fn(&Sampled) -> &Buckets);

const HISTOGRAMS: [SampledHistogram; 2] = [
    (
        "tcp_sampled_rtt",
        "Smoothed round trip of connections from before joinprobe, looked at once per interval; not single samples",
        |sampled| &sampled.smoothed,
    ),
    (
        "tcp_sampled_min_rtt",
        "Smallest round trip of the last minutes that the kernel remembers of each of these connections",
        |sampled| &sampled.minimum,
    ),
];

/// Nothing where no such connection was met.
pub(super) fn encode(at: &Snapshot, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    if at.targets.iter().any(|target| target.adopted > 0) {
        let help = "Connections from before joinprobe that are observed like any other since";
        let name = "connections_adopted";
        let mut adopted = family(encoder, name, help, None, MetricType::Counter)?;
        for target in at.targets.iter().filter(|target| target.adopted > 0) {
            counter(&mut adopted, &target.labels, target.adopted)?;
        }
    }
    let sampled = || {
        let targets = at.targets.iter();
        targets.filter_map(|target| Some((&target.labels, target.sampled.as_ref()?)))
    };
    if sampled().next().is_none() {
        return Ok(());
    }
    let help = "Open connections from before joinprobe that are only sampled";
    let name = "connections_sampled";
    let mut open = family(encoder, name, help, None, MetricType::Gauge)?;
    for (labels, sampled) in sampled() {
        open.encode_family(&With(labels, "source", SOURCE))?
            .encode_gauge(&sampled.open)?;
    }
    for (name, help, distribution) in HISTOGRAMS {
        let mut family = family(
            encoder,
            name,
            help,
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        for (labels, sampled) in sampled() {
            let labels = With(labels, "source", SOURCE);
            distribution(sampled).encode(&mut family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}
