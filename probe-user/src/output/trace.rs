//! A trace as it is written.

use std::io::{self, Write};

use serde::Serialize;

use crate::measure::micros;
use crate::trace::{End, Hop, Path, Trace};

/// The ways to one target, in the JSON shape.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceReport {
    /// SYNs sent.
    pub syns: u32,
    /// Connections opened and closed.
    pub connections: u32,
    /// Distinct paths, the most used first.
    pub paths: Vec<PathReport>,
}

/// One way to the target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathReport {
    /// Flows (source ports) that took it.
    pub flows: u32,
    /// `established`, `refused`, `rejected`, `silence`, `out of time` or `local error`.
    pub end: &'static str,
    /// From the first hop on.
    pub hops: Vec<HopReport>,
}

/// One hop.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HopReport {
    /// The TTL (IPv6: hop limit) that ended there.
    pub ttl: u8,
    /// Who answered; absent when nobody did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// SYN to answer, microseconds; the smallest of the path's flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_us: Option<u64>,
}

impl From<&Trace> for TraceReport {
    fn from(trace: &Trace) -> Self {
        Self {
            syns: trace.syns,
            connections: trace.connections,
            paths: trace.paths.iter().map(PathReport::new).collect(),
        }
    }
}

impl PathReport {
    fn new(path: &Path) -> Self {
        Self {
            flows: path.flows,
            end: match path.end {
                End::Established => "established",
                End::Refused => "refused",
                End::Rejected(_) => "rejected",
                End::Silence => "silence",
                End::OutOfTime => "out of time",
                End::Local(_) => "local error",
            },
            hops: path.hops.iter().map(HopReport::new).collect(),
        }
    }
}

impl HopReport {
    fn new(hop: &Hop) -> Self {
        Self {
            ttl: hop.ttl,
            address: hop.address.map(|address| address.to_string()),
            rtt_us: hop.rtt.map(micros),
        }
    }
}

/// A line per hop.
pub(super) fn write(trace: &TraceReport, out: &mut dyn Write) -> io::Result<()> {
    for path in &trace.paths {
        let plural = if path.flows == 1 { "" } else { "s" };
        writeln!(out, "    path of {} flow{plural}: {}", path.flows, path.end)?;
        for hop in &path.hops {
            match (&hop.address, hop.rtt_us) {
                (Some(address), Some(rtt)) => {
                    let (whole, part) = (rtt / 1000, rtt % 1000 / 10);
                    writeln!(
                        out,
                        "    {:>3}  {address:<24} {whole:>6}.{part:02} ms",
                        hop.ttl
                    )?;
                }
                _ => writeln!(out, "    {:>3}  no answer", hop.ttl)?,
            }
        }
    }
    Ok(())
}
