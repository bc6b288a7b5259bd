//! The phases of a watched command.

use std::time::{Instant, SystemTime};

use super::ledger::{Look, Moment};
use crate::output::{MeasuredReport, PhaseReport, Timestamp};

/// More phases than any kubeadm has: a command that prints brackets for ever must not fill the memory.
const MOST: usize = 256;

/// Phases so far.
#[derive(Debug)]
pub(super) struct Phases {
    current: Option<String>,
    began: (SystemTime, Instant),
    began_with: Moment,
    ended: Vec<PhaseReport>,
}

impl Default for Phases {
    fn default() -> Self {
        Self {
            current: None,
            began: (SystemTime::now(), Instant::now()),
            began_with: Moment::default(),
            ended: Vec::new(),
        }
    }
}

impl Phases {
    /// The phase that goes on.
    pub(super) fn current(&self) -> Option<&str> {
        self.current.as_deref()
    }

    /// Whether `phase` is another one, and one more is kept.
    pub(super) fn is_new(&self, phase: &str) -> bool {
        self.current() != Some(phase) && self.ended.len() < MOST
    }

    /// Whether a phase was ever announced.
    pub(super) fn any(&self) -> bool {
        self.current.is_some()
    }

    /// The counts at the beginning of the phase that goes on.
    pub(super) fn began_with(&self) -> &Moment {
        &self.began_with
    }

    /// Ends the phase that goes on, with a look at what happened in it.
    pub(super) fn end(&mut self, look: Look, rtt_source: &str) {
        let targets = look.since.into_iter();
        self.ended.push(PhaseReport {
            phase: self.current.clone(),
            time: Timestamp(self.began.0),
            duration_us: crate::measure::micros(self.began.1.elapsed()),
            targets: targets
                .map(|measured| MeasuredReport::new(measured, rtt_source))
                .collect(),
        });
        self.began = (SystemTime::now(), Instant::now());
        self.began_with = look.now;
    }

    /// Begins a phase.
    pub(super) fn enter(&mut self, phase: String) {
        self.current = Some(phase);
    }

    /// All that have ended.
    pub(super) fn into_reports(self) -> Vec<PhaseReport> {
        self.ended
    }
}
