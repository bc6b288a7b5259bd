//! `-o nagios`: a monitoring plugin, docs/formats.md.

use std::io::{self, Write};

use super::headline::{Headline, one_line};
use super::{Render, Report, perfdata};
use crate::exit::{Contract, Exit, Leniency};
use crate::verdict::FindingState;

/// A status line with performance data, then one line for each finding that asks for something.
#[derive(Clone, Copy, Debug)]
pub struct Nagios {
    /// What the user made of verdicts that are neither pass nor fail: the status agrees with the exit code.
    pub leniency: Leniency,
}

impl Nagios {
    /// Writes the status line of a run that came to no verdict.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn refuse(error: &str, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "JOINPROBE UNKNOWN - {}", plain(error))?;
        out.flush()
    }
}

impl Render for Nagios {
    fn write(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let contract = Contract::MonitoringPlugin;
        let exit = Exit::of(report.worst, contract.leniency(self.leniency));
        let status = match contract.code(exit) {
            0 => "OK",
            1 => "WARNING",
            2 => "CRITICAL",
            _ => "UNKNOWN",
        };
        let headline = Headline::of(report).map_or_else(
            || "nothing was checked".to_owned(),
            |headline| headline.sentence(),
        );
        write!(out, "JOINPROBE {status} - {}", plain(&headline))?;
        let metrics = perfdata::metrics(report);
        if !metrics.is_empty() {
            write!(out, " |")?;
            for metric in &metrics {
                write!(out, " {metric}")?;
            }
        }
        writeln!(out)?;
        for headline in Headline::all(report) {
            let word = match headline.finding.mark {
                _ if headline.tolerated(report) => "tolerated",
                FindingState::Fail => "fail",
                FindingState::Warn => "warn",
                FindingState::Inconclusive => "inconclusive",
                _ => continue,
            };
            let hint = plain(&headline.finding.hint);
            let separator = if hint.is_empty() { "" } else { " - " };
            writeln!(
                out,
                "{word}: {}{separator}{hint}",
                plain(&headline.sentence())
            )?;
        }
        out.flush()
    }
}

/// One line without the character that begins performance data.
fn plain(text: &str) -> String {
    one_line(text).replace('|', "/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::samples;
    use crate::verdict::Verdict;

    fn nagios(report: &Report, leniency: Leniency) -> String {
        let mut out = Vec::new();
        Nagios { leniency }.write(report, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn reads_as_recorded() {
        let usual = Leniency::default();
        insta::assert_snapshot!("nagios_pass", nagios(&samples::verdict(), usual));
        insta::assert_snapshot!("nagios_fail", nagios(&samples::trouble(), usual));
    }

    #[test]
    fn performance_data_follows_the_status_line_only() {
        let text = nagios(&samples::trouble(), Leniency::default());
        let mut lines = text.lines();
        let (status, perfdata) = lines.next().unwrap().split_once(" | ").unwrap();
        assert!(status.starts_with("JOINPROBE CRITICAL - "), "{status}");
        assert!(!perfdata::tests::parse(perfdata).unwrap().is_empty());
        assert!(lines.all(|line| !line.contains('|')));
    }

    #[test]
    fn the_status_agrees_with_the_exit_code() {
        let allow_inconclusive = Leniency {
            allow_inconclusive: true,
            ..Leniency::default()
        };
        for (verdict, leniency, status) in [
            (Verdict::Pass, Leniency::default(), "OK"),
            (Verdict::Warn, Leniency::default(), "WARNING"),
            (Verdict::Inconclusive, Leniency::default(), "UNKNOWN"),
            (Verdict::Inconclusive, allow_inconclusive, "OK"),
            (Verdict::Fail, allow_inconclusive, "CRITICAL"),
        ] {
            let mut report = samples::verdict();
            report.worst = verdict;
            let text = nagios(&report, leniency);
            assert!(
                text.starts_with(&format!("JOINPROBE {status} - ")),
                "{text}"
            );
        }
    }

    #[test]
    fn an_error_is_unknown_on_one_line() {
        let mut out = Vec::new();
        Nagios::refuse("cannot | attach:\nnot root", &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "JOINPROBE UNKNOWN - cannot / attach: not root\n");
    }
}
