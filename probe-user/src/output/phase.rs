//! What happened in each phase of the watched command.

use std::io::{self, Write};

use serde::Serialize;

use super::{MeasuredReport, Timestamp, summary};

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
            let process = target.process_name();
            let process = process.map_or_else(String::new, |name| format!(", {name}"));
            writeln!(
                out,
                "  {} {} ({}{process}): {}",
                target.role,
                target.target,
                target.side,
                summary::connections(target)
            )?;
        }
    }
    Ok(())
}
