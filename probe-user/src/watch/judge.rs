//! From intervals to verdicts.

use std::time::{Duration, SystemTime};

use super::processes;
use super::timing::KnownTiming;
use crate::config::{DecisionChoice, ObserveConfig};
use crate::measure::TargetMeasurement;
use crate::output::Timestamp;
use crate::target::{RoleName as _, Side};
use crate::verdict::{
    Finding, FindingState, Join, Limits, Policy, RunPolicy, RunVerdict, TargetVerdict, Verdict,
    WorstInterval, advise, combine, judge_target,
};

/// When an interval was.
#[derive(Clone, Debug)]
struct When {
    end: SystemTime,
    length: Duration,
    /// The worst target of the interval and what was found there.
    about: String,
}

/// Judges one interval after the other, and keeps the worst.
pub(super) struct Judge {
    timing: KnownTiming,
    decision: DecisionChoice,
    limits: Limits,
    confidence: f64,
    /// Fails are told as warnings.
    warn_only: bool,
    join: Join,
    worst: WorstInterval<When>,
    /// Since when the limits are what they are, if that is not the beginning.
    changed: Option<SystemTime>,
}

impl Judge {
    pub(super) fn new(config: &ObserveConfig) -> Self {
        let timing = KnownTiming::new(config);
        Self {
            confidence: config.decision.confidence,
            warn_only: config.decision.leniency.warn_only,
            limits: config.decision.limits_for(&timing.choice()),
            decision: config.decision.clone(),
            timing,
            join: config.join,
            worst: WorstInterval::default(),
            changed: None,
        }
    }

    /// Judges what happened in an interval, `rows` of each target's processes together.
    pub(super) fn interval(
        &mut self,
        end: SystemTime,
        length: Duration,
        rows: &[TargetMeasurement],
    ) -> RunVerdict {
        let measured = &*processes::together(rows);
        if self.timing.look_again() {
            self.limits = self.decision.limits_for(&self.timing.choice());
            // By other limits they might have been better or worse. The whole run is still judged, by the new ones.
            self.worst = WorstInterval::default();
            self.changed = Some(end);
            log::info!("this node's files tell etcd's timing: the limits follow it from now on");
        }
        let targets = self.targets(measured);
        let mut findings = Vec::new();
        if measured.is_empty() {
            findings.push(Finding::plain(
                "no-traffic",
                FindingState::Skipped,
                "nothing happened on the watched ports in this interval",
            ));
        }
        let decided = decided(measured, &targets);
        if let Some((verdict, about)) = decided.clone() {
            let when = When { end, length, about };
            self.worst.add(
                when,
                RunVerdict {
                    verdict,
                    findings: Vec::new(),
                    targets: Vec::new(),
                    recommendation: None,
                },
            );
        }
        let open = targets
            .iter()
            .any(|target| target.verdict == Verdict::Inconclusive);
        self.told(RunVerdict {
            verdict: match decided {
                Some((Verdict::Fail, _)) => Verdict::Fail,
                Some((verdict, _)) if !open => verdict,
                _ => Verdict::Inconclusive,
            },
            findings,
            targets: processes::apart(targets, rows),
            recommendation: None,
        })
    }

    fn told(&self, verdict: RunVerdict) -> RunVerdict {
        if self.warn_only {
            verdict.with_fails_as_warnings()
        } else {
            verdict
        }
    }

    /// The run's verdict: that of the worst decided interval, beside the whole run's distribution. What was too short or
    /// too quiet to decide any interval is decided by the whole run.
    pub(super) fn run(&self, rows: &[TargetMeasurement]) -> RunVerdict {
        let measured = &*processes::together(rows);
        let judged: Vec<_> = measured
            .iter()
            .cloned()
            .zip(self.targets(measured))
            .collect();
        let policy = RunPolicy {
            join: self.join,
            allow_unreachable: 0,
        };
        let mut run = combine(&judged, &policy);
        let missing = run
            .findings
            .iter()
            .any(|finding| finding.state == FindingState::Inconclusive);
        let whole = decided(measured, &run.targets).map(|(verdict, _)| verdict);
        let worst = self.worst.worst().map(|(_, worst)| worst.verdict);
        run.verdict = whole
            .into_iter()
            .chain(worst)
            .chain(missing.then_some(Verdict::Inconclusive))
            .max()
            .unwrap_or(Verdict::Inconclusive);
        run.findings.extend(self.changed.map(|since| {
            Finding::plain(
                "limits-changed",
                FindingState::Skipped,
                format!(
                    "etcd's timing was found in this node's files only at {}: the run as a whole is judged by it, single \
                     intervals only from then on",
                    Timestamp(since)
                ),
            )
        }));
        run.findings.push(self.worst_interval());
        advise(
            &mut run,
            measured,
            self.limits.timing(),
            &self.policy(measured),
            self.join,
        );
        run.targets = processes::apart(run.targets, rows);
        self.told(run)
    }

    fn policy(&self, measured: &[TargetMeasurement]) -> Policy {
        Policy {
            confidence: self.confidence,
            looks: 1,
            targets: u32::try_from(measured.len()).unwrap_or(u32::MAX).max(1),
        }
    }

    fn worst_interval(&self) -> Finding {
        let Some((when, worst)) = self.worst.worst() else {
            return Finding::plain(
                "worst-interval",
                FindingState::NotDecided,
                "no interval had enough samples to be decided by itself; the whole run is judged instead",
            );
        };
        let begin = when.end.checked_sub(when.length).unwrap_or(when.end);
        let state = match worst.verdict {
            Verdict::Fail => FindingState::Fail,
            Verdict::Warn => FindingState::Warn,
            _ => FindingState::Pass,
        };
        Finding::plain(
            "worst-interval",
            state,
            format!(
                "{} (worst interval, {}: {} to {})",
                when.about,
                worst.verdict.name(),
                Timestamp(begin),
                Timestamp(when.end),
            ),
        )
    }

    /// One verdict per target.
    fn targets(&self, measured: &[TargetMeasurement]) -> Vec<TargetVerdict> {
        let policy = self.policy(measured);
        measured
            .iter()
            .map(|measured| match measured.side {
                Side::Client => judge_target(measured, &self.limits, &policy),
                Side::Server => TargetVerdict::of(vec![Finding::plain(
                    "server-side",
                    FindingState::Skipped,
                    "not judged: this row is everybody who connected to this host, over whichever path; a median over \
                     all of them would hide the one that is slow",
                )]),
            })
            .collect()
    }
}

/// The worst of what could be decided, and what it is about; `None` when nothing could.
fn decided(measured: &[TargetMeasurement], targets: &[TargetVerdict]) -> Option<(Verdict, String)> {
    measured
        .iter()
        .zip(targets)
        .filter(|(measured, _)| measured.side == Side::Client)
        .filter_map(|(measured, target)| {
            let (verdict, text) = decided_finding(target)?;
            let role = measured.target.spec.role.name();
            Some((verdict, format!("{role} {}: {text}", measured.target)))
        })
        .reduce(|worst, next| if next.0 > worst.0 { next } else { worst })
}

/// A target's worst decided finding. Without a decided RTT there is no pass.
fn decided_finding(target: &TargetVerdict) -> Option<(Verdict, &str)> {
    let of = |state| {
        target
            .findings
            .iter()
            .find(|finding| finding.state == state)
    };
    let rtt = |finding: &&Finding| {
        finding.state == FindingState::Pass && finding.id.ends_with("rtt-median")
    };
    of(FindingState::Fail)
        .map(|finding| (Verdict::Fail, finding))
        .or_else(|| of(FindingState::Warn).map(|finding| (Verdict::Warn, finding)))
        .or_else(|| {
            target
                .findings
                .iter()
                .find(rtt)
                .map(|finding| (Verdict::Pass, finding))
        })
        .map(|(verdict, finding)| (verdict, finding.text.as_str()))
}
