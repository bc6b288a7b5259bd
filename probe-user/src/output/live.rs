//! `-o table` of a run that goes on: a table per interval, redrawn in place on a terminal, the verdict at the end.

use std::fmt::Write as _;
use std::io::Write;

use super::stream::Stream;
use super::{
    DistributionReport, ExportError, Exporter, IntervalReport, Render as _, Report, Table,
    TargetReport,
};

/// Lines above this many would scroll out of a terminal, where they could not be redrawn.
const MOST_LINES: usize = 20;

/// A table per interval.
#[derive(Debug)]
pub struct LiveTable<W> {
    table: Table,
    stream: Stream<W>,
    redraw: bool,
    /// Lines on the terminal that the next table replaces.
    drawn: usize,
}

impl<W: Write> LiveTable<W> {
    /// Tables to `out`; `redraw` where it is a terminal.
    pub fn new(table: Table, out: W, redraw: bool) -> Self {
        Self {
            table,
            stream: Stream::new(out),
            redraw,
            drawn: 0,
        }
    }

    /// The escape that puts the cursor where the last table began.
    fn erase(&mut self) -> String {
        let drawn = std::mem::take(&mut self.drawn);
        if drawn == 0 {
            String::new()
        } else {
            format!("\x1b[{drawn}A\x1b[J")
        }
    }
}

impl<W: Write> Exporter for LiveTable<W> {
    fn name(&self) -> String {
        "standard output".to_owned()
    }

    fn interval(&mut self, report: &IntervalReport) -> Result<(), ExportError> {
        let body = lines(report);
        let mut text = self.erase();
        for line in &body {
            text.push_str(line);
            text.push('\n');
        }
        if self.redraw && body.len() <= MOST_LINES {
            self.drawn = body.len();
        }
        self.stream.write(text.as_bytes())
    }

    fn verdict(&mut self, report: &Report) -> Result<(), ExportError> {
        self.drawn = 0;
        let mut bytes = b"\n".to_vec();
        self.table
            .write(report, &mut bytes)
            .map_err(|error| ExportError::Encode(error.to_string()))?;
        self.stream.write(&bytes)
    }
}

fn lines(report: &IntervalReport) -> Vec<String> {
    let mut head = format!(
        "{}  {} ms  {}",
        report.time,
        report.interval_us / 1000,
        report.verdict
    );
    if let Some(phase) = &report.phase {
        let _ = write!(head, "  [{phase}]");
    }
    if report.targets.is_empty() {
        head.push_str("  no traffic");
        return vec![head];
    }
    let mut lines = vec![
        head,
        format!(
            "  {:<11} {:<24} {:<6} {:>6} {:>6} {:>5}  {:>18} {:>18} {:>18}  verdict",
            "role",
            "target",
            "side",
            "conns",
            "failed",
            "resent",
            "handshake p50 (n)",
            "segment p50 (n)",
            "segment p99"
        ),
    ];
    lines.extend(report.targets.iter().map(line));
    lines
}

fn line(target: &TargetReport) -> String {
    let measured = &target.measured;
    let connections = measured.connections;
    let failed = connections.refused
        + connections.timed_out
        + connections.unreachable
        + connections.abandoned
        + connections.failed_unknown;
    let p99 = measured.segment.quantiles();
    format!(
        "  {:<11} {:<24} {:<6} {:>6} {:>6} {:>6}  {:>18} {:>18} {:>18}  {}",
        measured.role,
        measured.target,
        measured.side,
        connections.established,
        failed,
        measured.syn_retransmits + measured.retransmits,
        median(&measured.handshake),
        median(&measured.segment),
        p99.map_or("-".to_owned(), |quantiles| milliseconds(quantiles.p99_us)),
        target.verdict
    )
}

fn median(distribution: &DistributionReport) -> String {
    distribution
        .quantiles()
        .map_or("-".to_owned(), |quantiles| {
            format!(
                "{} ({})",
                milliseconds(quantiles.p50_us),
                distribution.count()
            )
        })
}

fn milliseconds(micros: u64) -> String {
    format!("{}.{} ms", micros / 1000, micros % 1000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Marks, samples};

    fn written(redraw: bool) -> String {
        let mut out = Vec::new();
        {
            let marks = Marks::Ascii;
            let mut live = LiveTable::new(Table { marks }, &mut out, redraw);
            live.interval(&samples::interval_number(1)).unwrap();
            live.interval(&samples::interval_number(2)).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_pipe_gets_plain_lines() {
        let text = written(false);
        assert!(!text.contains('\x1b'), "{text}");
        assert_eq!(text.lines().count(), 10);
        assert!(text.contains("10.1.0.2:2379"), "{text}");
        assert!(text.contains("[etcd]"), "{text}");
    }

    #[test]
    fn a_terminal_is_redrawn_in_place() {
        let text = written(true);
        assert_eq!(text.matches("\x1b[5A\x1b[J").count(), 1, "{text:?}");
    }
}
