//! `-o table`: for people. A category, one line per check with a mark, hints below what needs them.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::{FindingReport, Render, Report, TargetReport, summary};
use crate::verdict::FindingState;

const GREEN: Style = AnsiColor::Green.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();
const RED: Style = AnsiColor::Red.on_default().bold();
const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

/// Which characters mark a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// For UTF-8 locales.
    Unicode,
    /// For any other: serial consoles and cloud-init logs.
    Ascii,
}

impl Marks {
    /// Chosen by the locale's `LC_ALL`, `LC_CTYPE` or `LANG`, the first that is set.
    #[must_use]
    pub fn of_locale() -> Self {
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let locale = set("LC_ALL")
            .or_else(|| set("LC_CTYPE"))
            .or_else(|| set("LANG"));
        let utf8 = locale.is_some_and(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        if utf8 { Self::Unicode } else { Self::Ascii }
    }

    /// The characters that mark a check in this state, and their style.
    #[must_use]
    pub fn of(self, state: FindingState) -> (&'static str, Style) {
        let (unicode, ascii, style) = match state {
            FindingState::Pass => ("√", "ok", GREEN),
            FindingState::Warn => ("‼", "!!", YELLOW),
            FindingState::Fail => ("×", "XX", RED),
            FindingState::Inconclusive => ("?", "??", YELLOW),
            FindingState::NotDecided => ("·", "..", DIM),
            FindingState::Skipped => ("-", "--", DIM),
        };
        (
            if self == Self::Unicode {
                unicode
            } else {
                ascii
            },
            style,
        )
    }
}

/// The table.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Characters of the marks.
    pub marks: Marks,
}

impl Table {
    fn category(out: &mut dyn Write, title: &str) -> io::Result<()> {
        let line = "-".repeat(title.chars().count());
        writeln!(out, "{BOLD}{title}{BOLD:#}\n{DIM}{line}{DIM:#}")
    }

    fn check(self, out: &mut dyn Write, state: FindingState, text: &str) -> io::Result<()> {
        let (mark, style) = self.marks.of(state);
        writeln!(out, "{style}{mark}{style:#} {text}")
    }

    fn finding(self, out: &mut dyn Write, finding: &FindingReport) -> io::Result<()> {
        // Where a limit comes from stands beside it also when all is well: a limit nobody can trace is not believed.
        let source = if finding.source.is_empty() {
            String::new()
        } else {
            format!(" {DIM}[{}]{DIM:#}", finding.source)
        };
        self.check(out, finding.mark, &format!("{}{source}", finding.text))?;
        let asks = matches!(
            finding.mark,
            FindingState::Warn | FindingState::Fail | FindingState::Inconclusive
        );
        if asks && !finding.hint.is_empty() {
            let indent = " ".repeat(self.marks.of(finding.mark).0.chars().count());
            writeln!(out, "{indent} {DIM}hint: {}{DIM:#}", finding.hint)?;
        }
        Ok(())
    }

    /// One target, of which there is a row for each process where these are told apart.
    fn target(self, out: &mut dyn Write, rows: &[TargetReport]) -> io::Result<()> {
        let Some(target) = rows.first() else {
            return Ok(());
        };
        let measured = &target.measured;
        let host = measured
            .host
            .as_ref()
            .map(|host| format!(" ({host})"))
            .unwrap_or_default();
        Self::category(out, &format!("{} {}{host}", measured.role, measured.target))?;
        if let Some(origin) = target.found_in.first() {
            writeln!(out, "{DIM}from {origin}{DIM:#}")?;
        }
        for finding in &target.findings {
            self.finding(out, finding)?;
        }
        if rows.iter().any(|row| row.measured.process.is_some()) {
            for row in rows {
                self.check(out, FindingState::Skipped, &summary::process(&row.measured))?;
            }
        }
        if measured.adopted > 0 {
            let text = format!(
                "{} connections from before joinprobe were adopted",
                measured.adopted
            );
            self.check(out, FindingState::Skipped, &text)?;
        }
        if let Some(sampled) = &measured.sampled {
            self.check(out, FindingState::Skipped, &sampled.sentence())?;
        }
        if let Some(trace) = &target.trace {
            super::trace::write(trace, out)?;
        }
        writeln!(out)
    }

    fn environment(self, out: &mut dyn Write, report: &Report) -> io::Result<()> {
        let observer = &report.observer;
        Self::category(out, &format!("environment of {}", report.node))?;
        let attached = format!(
            "kernel {} measures TCP RTT at {} (source: {})",
            observer.kernel, observer.cgroup, observer.rtt_source
        );
        self.check(out, FindingState::Pass, &attached)?;
        let memory = format!(
            "memory {} MiB after attaching, {} MiB at the peak",
            mebibytes(observer.rss_bytes),
            mebibytes(observer.rss_peak_bytes)
        );
        self.check(out, FindingState::Pass, &memory)?;
        writeln!(out)
    }
}

impl Render for Table {
    fn write(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        self.environment(out, report)?;
        let further = |_: &TargetReport, next: &TargetReport| next.is_further_process();
        for rows in report.targets.chunk_by(further) {
            self.target(out, rows)?;
        }
        if !report.phases.is_empty() {
            Self::category(out, "phases")?;
            super::phase::write(&report.phases, out)?;
            writeln!(out)?;
        }
        if !report.findings.is_empty() {
            Self::category(out, "join")?;
            for finding in &report.findings {
                self.finding(out, finding)?;
            }
            writeln!(out)?;
        }
        let style = match report.verdict {
            "pass" => GREEN,
            "fail" => RED,
            _ => YELLOW,
        };
        writeln!(
            out,
            "Verdict: {style}{}{style:#} after {} s",
            report.verdict,
            seconds(report.duration_us)
        )?;
        out.flush()
    }
}

fn mebibytes(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10) / (1 << 20);
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn seconds(micros: u64) -> String {
    let hundredths = micros / 10_000;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::samples;

    fn table(marks: Marks, color: anstream::ColorChoice) -> String {
        let mut out = anstream::AutoStream::new(Vec::new(), color);
        Table { marks }
            .write(&samples::verdict(), &mut out)
            .unwrap();
        String::from_utf8(out.into_inner()).unwrap()
    }

    #[test]
    fn reads_as_recorded() {
        insta::assert_snapshot!("table", table(Marks::Unicode, anstream::ColorChoice::Never));
    }

    #[test]
    fn a_plain_locale_gets_plain_characters() {
        let plain = table(Marks::Ascii, anstream::ColorChoice::Never);
        assert!(plain.is_ascii(), "{plain}");
    }

    #[test]
    fn colour_changes_nothing_but_escapes() {
        let coloured = table(Marks::Unicode, anstream::ColorChoice::AlwaysAnsi);
        assert!(coloured.contains('\u{1b}'));
        let plain = anstream::adapter::strip_str(&coloured).to_string();
        assert_eq!(plain, table(Marks::Unicode, anstream::ColorChoice::Never));
    }
}
