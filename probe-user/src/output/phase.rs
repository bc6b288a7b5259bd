//! What happened in each phase of the watched command.

use std::io::{self, Write};

use serde::Serialize;

use super::{MeasuredReport, Timestamp};

/// One phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseReport {
    /// As the command announced it; `None` before the first announcement.
    pub phase: Option<String>,
    /// When it began.
    pub time: Timestamp,
    /// How long it took, microseconds.
    pub duration_us: u64,
    /// What was measured in it, one per target that saw traffic.
    pub targets: Vec<MeasuredReport>,
}

/// A line per phase and target, for people.
pub(super) fn write(phases: &[PhaseReport], out: &mut dyn Write) -> io::Result<()> {
    for phase in phases {
        let name = phase.phase.as_deref().unwrap_or("before the first phase");
        writeln!(out, "[{name}] {} ms", phase.duration_us / 1000)?;
        for target in &phase.targets {
            let failed: u64 = target
                .connections
                .by_outcome()
                .into_iter()
                .filter(|(outcome, _)| !matches!(*outcome, "established" | "reset"))
                .map(|(_, count)| count)
                .sum();
            write!(
                out,
                "  {} {} ({}): {} connections, {failed} failed",
                target.role, target.target, target.side, target.connections.established
            )?;
            if let Some(quantiles) = target.handshake.quantiles() {
                let (whole, tenths) = (quantiles.p50_us / 1000, quantiles.p50_us % 1000 / 100);
                write!(
                    out,
                    ", handshake p50 {whole}.{tenths} ms (n={})",
                    target.handshake.count()
                )?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}
