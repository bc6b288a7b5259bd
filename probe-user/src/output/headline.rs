//! The one finding that a single line has room for.

use super::{Amount, FindingReport, Report, TargetReport};
use crate::verdict::{FindingState, Unit, Verdict};

/// What a report comes down to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headline<'a> {
    /// The target it is about; `None` when it is about the run.
    pub(super) target: Option<&'a TargetReport>,
    /// The finding.
    pub(super) finding: &'a FindingReport,
}

impl<'a> Headline<'a> {
    /// The worst finding; among equals first what cannot be reached or was refused, then the one that is farthest beyond its limit, or closest to it. `None` when there
    /// is no finding at all.
    pub(super) fn of(report: &'a Report) -> Option<Self> {
        Self::all(report)
            .filter(|headline| !headline.tolerated(report))
            // The first of several equals: `max_by` alone would take the last.
            .reduce(|worst, next| {
                if next.weight() > worst.weight() {
                    next
                } else {
                    worst
                }
            })
    }

    /// Every finding: those of the run, then those of each target.
    pub(super) fn all(report: &'a Report) -> impl Iterator<Item = Self> {
        let of_run = report.findings.iter().map(|finding| Self {
            target: None,
            finding,
        });
        let of_targets = report.targets.iter().flat_map(|target| {
            target.findings.iter().map(move |finding| Self {
                target: Some(target),
                finding,
            })
        });
        of_run.chain(of_targets)
    }

    /// Whether the run's verdict was reached in spite of it, as `--allow-unreachable` asks for.
    pub(super) fn tolerated(&self, report: &Report) -> bool {
        match self.finding.mark {
            FindingState::Fail => report.worst < Verdict::Fail,
            FindingState::Inconclusive => report.worst < Verdict::Inconclusive,
            _ => false,
        }
    }

    /// `etcd-client 10.1.0.2:2379`; empty for a finding about the run.
    pub(super) fn subject(&self) -> String {
        self.target
            .map(|target| format!("{} {}", target.measured.role, target.measured.target))
            .unwrap_or_default()
    }

    /// The subject and the finding's sentence, on one line.
    pub(super) fn sentence(&self) -> String {
        let text = one_line(&self.finding.text);
        match self.target {
            None => text,
            Some(target) if text.starts_with(&target.measured.target) => {
                format!("{} {text}", target.measured.role)
            }
            Some(_) => format!("{}: {text}", self.subject()),
        }
    }

    fn weight(&self) -> (u8, u8, f64) {
        let severity = match self.finding.mark {
            FindingState::Fail => 5,
            FindingState::Inconclusive => 4,
            FindingState::Warn => 3,
            FindingState::Pass => 2,
            FindingState::NotDecided => 1,
            FindingState::Skipped => 0,
        };
        // A server that is not there is worse than one that is slow.
        let without_amount = if severity == 5 { f64::INFINITY } else { -1.0 };
        let share = self
            .finding
            .amount
            .and_then(share_of_limit)
            .unwrap_or(without_amount);
        (severity, urgency(self.finding.id), share)
    }
}

/// How much a check matters beside others in the same state: a join is stopped by what is not there or refuses it,
/// slowed by distance and loss, and not touched by what is due next month.
fn urgency(id: &str) -> u8 {
    match id {
        "reachable" | "unreachable-members" => 3,
        "client-certificate" | "tls" => 2,
        "syn-retransmits" | "key-permissions" => 0,
        _ if id.ends_with("-certificate") || id.ends_with("-ca") => 0,
        _ => 1,
    }
}

#[allow(clippy::cast_precision_loss, reason = "compared, not shown")]
fn share_of_limit(amount: Amount) -> Option<f64> {
    match (amount.value, amount.limit?) {
        (0, _) => Some(0.0),
        // Of a limit of none there is no multiple.
        (value, 0) => Some(value as f64),
        (value, limit) => Some(value as f64 / limit as f64),
    }
}

/// `text` without line breaks and other control characters, which a server's message may hold.
pub(super) fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_control() || c.is_whitespace())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// A whole number scaled by a power of ten, exactly: `decimal(10_300, 6)` is `0.0103`.
pub(super) fn decimal(value: u64, digits: u32) -> String {
    let scale = 10_u64.pow(digits);
    let fraction = format!("{:0width$}", value % scale, width = digits as usize);
    match fraction.trim_end_matches('0') {
        "" => (value / scale).to_string(),
        fraction => format!("{}.{fraction}", value / scale),
    }
}

/// A value in the fewest characters that tell it: `10.3ms`, `1.25%`, `3`.
pub(super) fn brief(value: u64, unit: Unit) -> String {
    match unit {
        Unit::Micros => {
            // Three digits are what a glance takes in.
            let step = match value {
                0..10_000 => 10,
                10_000..100_000 => 100,
                _ => 1_000,
            };
            let rounded = value.saturating_add(step / 2) / step * step;
            format!("{}ms", decimal(rounded, 3))
        }
        Unit::PartsPerMillion => format!("{}%", decimal(value / 100, 2)),
        Unit::Count => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::samples;

    #[test]
    fn the_worst_finding_is_chosen() {
        let report = samples::trouble();
        let headline = Headline::of(&report).unwrap();
        assert_eq!(headline.subject(), "etcd-peer [fd00::2]:2380");
        assert_eq!(headline.finding.mark, FindingState::Fail);
        let report = samples::verdict();
        assert_eq!(
            Headline::of(&report).unwrap().finding.mark,
            FindingState::Pass
        );
    }

    #[test]
    fn what_was_tolerated_is_no_headline() {
        let mut report = samples::trouble();
        report.worst = Verdict::Warn;
        assert_eq!(
            Headline::of(&report).unwrap().finding.mark,
            FindingState::Warn
        );
    }

    #[test]
    fn what_stops_a_join_goes_before_what_slows_it() {
        let warning = |id| {
            let finding = crate::verdict::Finding {
                value: Some(3),
                limit: Some(0),
                ..crate::verdict::Finding::plain(id, FindingState::Warn, id)
            };
            FindingReport::new(&finding)
        };
        let mut report = samples::nothing();
        report.findings = [
            "server-certificate",
            "etcd-ca",
            "syn-retransmits",
            "etcd-path-rtt-median",
            "client-certificate",
            "unreachable-members",
        ]
        .map(warning)
        .into();
        while let Some(expected) = report.findings.last().map(|finding| finding.id) {
            if report.findings.len() < 4 {
                break;
            }
            assert_eq!(Headline::of(&report).unwrap().finding.id, expected);
            report.findings.pop();
        }
    }

    #[test]
    fn a_text_becomes_one_line() {
        assert_eq!(one_line("a\r\n b\tc\u{1b}[31m d "), "a b c [31m d");
    }

    #[test]
    fn values_are_brief_and_exact() {
        assert_eq!(decimal(10_300, 6), "0.0103");
        assert_eq!(decimal(2_000_000, 6), "2");
        assert_eq!(decimal(1, 6), "0.000001");
        assert_eq!(brief(10_349, Unit::Micros), "10.3ms");
        assert_eq!(brief(131_400, Unit::Micros), "131ms");
        assert_eq!(brief(12_500, Unit::PartsPerMillion), "1.25%");
        assert_eq!(brief(2, Unit::Count), "2");
        assert!(brief(u64::MAX, Unit::Micros).ends_with("ms"));
    }
}
