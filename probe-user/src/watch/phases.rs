//! The phases of a watched command.

use std::time::{Duration, SystemTime};

use super::ledger::Moment;
use crate::config::ObserveConfig;
use crate::measure::micros;
use crate::output::{MeasuredReport, PhaseReport, Timestamp};

/// More phases than any kubeadm has: a command that prints brackets for ever must not fill the memory.
const MOST: usize = 256;

/// Phases so far.
#[derive(Debug, Default)]
pub(super) struct Phases {
    current: Option<String>,
    entered: usize,
    /// The counts when the newest report's phase began.
    began_with: Moment,
    /// The counts when the newest interval ended.
    last: Moment,
    reports: Vec<PhaseReport>,
}

impl Phases {
    /// The phase that goes on.
    pub(super) fn current(&self) -> Option<&str> {
        self.current.as_deref()
    }

    /// Whether `phase` is another one, and one more is kept.
    pub(super) fn is_new(&self, phase: &str) -> bool {
        self.current() != Some(phase) && self.entered < MOST
    }

    /// Begins a phase.
    pub(super) fn enter(&mut self, phase: String) {
        self.entered += 1;
        self.current = Some(phase);
    }

    /// Takes in an interval that lies in `phase` and ended with `moment`.
    pub(super) fn add(
        &mut self,
        phase: Option<&str>,
        (end, length): (SystemTime, Duration),
        moment: &Moment,
        config: &ObserveConfig,
        rtt_source: &str,
    ) {
        let length_us = micros(length);
        let goes_on = self
            .reports
            .last_mut()
            .filter(|last| last.phase.as_deref() == phase);
        if let Some(last) = goes_on {
            last.duration_us += length_us;
        } else {
            self.began_with = std::mem::take(&mut self.last);
            self.reports.push(PhaseReport {
                phase: phase.map(str::to_owned),
                time: Timestamp(end.checked_sub(length).unwrap_or(end)),
                duration_us: length_us,
                targets: Vec::new(),
            });
        }
        if let Some(last) = self.reports.last_mut() {
            last.targets = moment
                .since(&self.began_with, config)
                .into_iter()
                .map(|measured| MeasuredReport::new(measured, rtt_source))
                .collect();
        }
        self.last = moment.clone();
    }

    /// All of them; none where none was announced.
    pub(super) fn into_reports(self) -> Vec<PhaseReport> {
        if self.entered == 0 {
            Vec::new()
        } else {
            self.reports
        }
    }
}
