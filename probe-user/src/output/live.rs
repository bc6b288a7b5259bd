//! `-o table` of a run that goes on: a table per interval, redrawn in place on a terminal, the verdict at the end.

use std::fmt::Write as _;
use std::io::Write;

use super::stream::Stream;
use super::{
    DistributionReport, ExportError, Exporter, IntervalReport, Render as _, Report, Table,
    TargetReport,
};
use crate::verdict::{FindingState, text};

/// The terminal that tables are redrawn on.
pub struct Screen {
    /// Its columns and rows now, which change with its window; `None` where it does not tell.
    pub size: fn() -> Option<(usize, usize)>,
    /// How many lines others have written to it so far.
    pub foreign_lines: fn() -> u64,
    /// Whether it shall show no colours. Its cursor moves all the same.
    pub colourless: bool,
}

/// What is on the screen and may be drawn over.
struct Drawn {
    rows: usize,
    /// Terminals do not agree on what becomes of wrapped lines when the window changes.
    size: (usize, usize),
    foreign_lines: u64,
}

/// A table per interval.
pub struct LiveTable<W> {
    table: Table,
    stream: Stream<W>,
    screen: Option<Screen>,
    drawn: Option<Drawn>,
}

impl<W: Write> LiveTable<W> {
    /// Tables to `out`, redrawn in place where it is a `screen`.
    pub fn new(table: Table, out: W, screen: Option<Screen>) -> Self {
        Self {
            table,
            stream: Stream::new(out),
            screen,
            drawn: None,
        }
    }

    /// Names the stream in errors; by itself it is standard output.
    #[must_use]
    pub fn called(mut self, name: &str) -> Self {
        self.stream = self.stream.called(name);
        self
    }

    /// The escape that puts the cursor where the last table began. Nothing where the window has changed or where others
    /// have written below it, which must stay to be read.
    fn erase(&mut self) -> String {
        match (&self.screen, self.drawn.take()) {
            (Some(screen), Some(drawn))
                if (screen.size)() == Some(drawn.size)
                    && (screen.foreign_lines)() == drawn.foreign_lines =>
            {
                format!("\x1b[{}A\x1b[J", drawn.rows)
            }
            _ => String::new(),
        }
    }

    /// What of these lines can be drawn over: all, or nothing where a part scrolls out.
    fn drawn(&self, lines: &[String]) -> Option<Drawn> {
        let screen = self.screen.as_ref()?;
        let size = (screen.size)().filter(|(columns, _)| *columns > 0)?;
        let rows: usize = lines
            .iter()
            .map(|line| line.chars().count().div_ceil(size.0).max(1))
            .sum();
        (rows < size.1).then(|| Drawn {
            rows,
            size,
            foreign_lines: (screen.foreign_lines)(),
        })
    }
}

impl<W: Write> Exporter for LiveTable<W> {
    fn name(&self) -> String {
        self.stream.name()
    }

    fn interval(&mut self, report: &IntervalReport) -> Result<(), ExportError> {
        let body = lines(report);
        let mut text = self.erase();
        for line in &body {
            text.push_str(line);
            text.push('\n');
        }
        self.stream.write(text.as_bytes())?;
        self.drawn = self.drawn(&body);
        Ok(())
    }

    fn verdict(&mut self, report: &Report) -> Result<(), ExportError> {
        self.drawn = None;
        let mut bytes = b"\n".to_vec();
        self.table
            .write(report, &mut bytes)
            .map_err(|error| ExportError::Encode(error.to_string()))?;
        if self.screen.as_ref().is_some_and(|screen| screen.colourless) {
            bytes = anstream::adapter::strip_bytes(&bytes).into_vec();
        }
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
    let by_process = report
        .targets
        .iter()
        .any(|target| target.measured.process.is_some());
    let process = |name: &str| {
        if by_process {
            format!("{name:<15} ")
        } else {
            String::new()
        }
    };
    let mut lines = vec![
        head,
        format!(
            "  {:<11} {:<24} {:<6} {}{:>6} {:>6} {:>5}  {:>18} {:>18} {:>18}  verdict",
            "role",
            "target",
            "side",
            process("process"),
            "conns",
            "failed",
            "resent",
            "handshake p50 (n)",
            "segment p50 (n)",
            "segment p99"
        ),
    ];
    for target in &report.targets {
        lines.push(line(
            target,
            &process(target.measured.process_name().unwrap_or("-")),
        ));
        let sampled = target.measured.sampled.as_ref();
        lines.extend(sampled.map(|sampled| format!("    {}", sampled.sentence())));
    }
    lines
}

fn line(target: &TargetReport, process: &str) -> String {
    let measured = &target.measured;
    let connections = measured.connections;
    let failed = connections.refused
        + connections.timed_out
        + connections.unreachable
        + connections.abandoned
        + connections.failed_unknown;
    let p99 = measured.segment.quantiles();
    let adopted = match measured.adopted {
        0 => String::new(),
        adopted => format!("  [{adopted} adopted]"),
    };
    format!(
        "  {:<11} {:<24} {:<6} {process}{:>6} {:>6} {:>6}  {:>18} {:>18} {:>18}  {}{}{adopted}",
        measured.role,
        measured.target,
        measured.side,
        connections.established,
        failed,
        measured.syn_retransmits + measured.retransmits,
        median(&measured.handshake),
        median(&measured.segment),
        p99.map_or("-".to_owned(), |quantiles| text::ms(quantiles.p99_us)),
        target.verdict,
        missing(target)
    )
}

/// How many samples an open verdict still lacks.
fn missing(target: &TargetReport) -> String {
    let open = target
        .findings
        .iter()
        .find(|finding| finding.mark == FindingState::Inconclusive);
    match open {
        None => String::new(),
        Some(finding) => match finding.needs {
            Some(needs) => format!(" (n={} of {needs})", finding.n),
            None => format!(" (n={})", finding.n),
        },
    }
}

fn median(distribution: &DistributionReport) -> String {
    distribution
        .quantiles()
        .map_or("-".to_owned(), |quantiles| {
            format!("{} ({})", text::ms(quantiles.p50_us), distribution.count())
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Marks, samples};

    fn written(screen: Option<Screen>) -> String {
        let mut out = Vec::new();
        {
            let marks = Marks::Ascii;
            let mut live = LiveTable::new(Table { marks }, &mut out, screen);
            live.interval(&samples::interval_number(1)).unwrap();
            live.interval(&samples::interval_number(2)).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_open_row_says_what_it_lacks() {
        let mut report = samples::interval();
        report.targets[0].findings[0].mark = FindingState::Inconclusive;
        report.targets[0].findings[0].n = 3;
        report.targets[0].findings[0].needs = Some(5);
        let text = lines(&report).join("\n");
        assert!(text.contains(" (n=3 of 5)"), "{text}");
    }

    #[test]
    fn a_pipe_gets_plain_lines() {
        let text = written(None);
        assert!(!text.contains('\x1b'), "{text}");
        assert_eq!(text.lines().count(), 10);
        assert!(text.contains("10.1.0.2:2379"), "{text}");
        assert!(text.contains("[etcd]"), "{text}");
    }

    #[test]
    fn connections_from_before_are_labelled() {
        let mut report = samples::interval();
        report.targets[0].measured.adopted = 2;
        report.targets[1].measured.sampled = Some(Box::new(samples::sampled().into()));
        let lines = lines(&report);
        assert_eq!(lines.len(), 6);
        assert!(lines[2].ends_with("  [2 adopted]"), "{lines:?}");
        assert!(!lines[3].contains("adopted"), "{lines:?}");
        assert!(lines[4].starts_with("    2 of 3 connections"), "{lines:?}");
    }

    #[test]
    fn a_terminal_is_redrawn_in_place() {
        let text = written(Some(Screen {
            size: || Some((200, 24)),
            foreign_lines: || 0,
            colourless: false,
        }));
        assert_eq!(text.matches("\x1b[5A\x1b[J").count(), 1, "{text:?}");
    }

    #[test]
    fn lines_that_wrap_take_more_rows() {
        let text = written(Some(Screen {
            size: || Some((80, 24)),
            foreign_lines: || 0,
            colourless: false,
        }));
        let rows: usize = written(None)
            .lines()
            .take(5)
            .map(|line| line.chars().count().div_ceil(80).max(1))
            .sum();
        assert!(rows > 5);
        assert!(text.contains(&format!("\x1b[{rows}A\x1b[J")), "{text:?}");
    }

    #[test]
    fn what_cannot_be_drawn_over_stays() {
        use std::sync::atomic::{AtomicU64, Ordering};
        static LINES: AtomicU64 = AtomicU64::new(0);
        let too_low = Screen {
            size: || Some((200, 5)),
            foreign_lines: || 0,
            colourless: false,
        };
        let written_to = Screen {
            size: || Some((200, 24)),
            foreign_lines: || LINES.fetch_add(1, Ordering::Relaxed),
            colourless: false,
        };
        let silent = Screen {
            size: || None,
            foreign_lines: || 0,
            colourless: false,
        };
        for screen in [too_low, written_to, silent] {
            assert_eq!(written(Some(screen)), written(None));
        }
    }
}
