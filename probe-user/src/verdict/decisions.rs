//! What a run has decided so far, and cannot take back.

use std::collections::{BTreeMap, HashMap};

use super::bounds::Bounds;
use super::judge::{Rules, judge};
use super::limits::Limits;
use super::policy::Policy;
use super::{RunVerdict, TargetVerdict, Verdict};
use crate::measure::TargetMeasurement;
use crate::target::{Side, Target};

/// Remembers, within one run, what was decided at each target.
///
/// Judge every look at a target through the same value: a limit that one look found exceeded, or kept, stays so, however
/// later samples fall. Each look has its own share of the run's error probability, so this costs no confidence.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    targets: HashMap<(Target, Side), Known>,
}

impl Decisions {
    /// Judges a target as [`super::judge_target`] does, by all looks so far. `measured` holds everything measured at
    /// the target since the run began, path samples of all its connections in the order they were taken.
    pub fn judge(
        &mut self,
        measured: &TargetMeasurement,
        limits: &Limits,
        policy: &Policy,
    ) -> TargetVerdict {
        let known = self
            .targets
            .entry((measured.target.clone(), measured.side))
            .or_default();
        judge(
            measured,
            &mut Rules {
                limits,
                policy,
                known,
            },
        )
    }
}

/// The bounds that earlier looks at one target gave, by finding id.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    bounds: BTreeMap<&'static str, Bounds>,
}

impl Known {
    /// Narrows what is known by what a look gave, and returns it. What an earlier look excluded stays excluded.
    pub(super) fn narrow(&mut self, id: &'static str, look: Bounds) -> Bounds {
        let known = self.bounds.entry(id).or_default();
        let lower = match (look.lower, known.upper) {
            (Some(lower), Some(upper)) => Some(lower.min(upper)),
            (lower, _) => lower,
        };
        let upper = match (look.upper, known.lower) {
            (Some(upper), Some(lower)) => Some(upper.max(lower)),
            (upper, _) => upper,
        };
        *known = Bounds {
            lower: known.lower.max(lower),
            upper: match (known.upper, upper) {
                (Some(known), Some(look)) => Some(known.min(look)),
                (known, look) => known.or(look),
            },
        };
        *known
    }
}

/// Keeps the worst interval of a run whose intervals are judged one by one. `T` tells when it was.
#[derive(Clone, Debug)]
pub struct WorstInterval<T> {
    worst: Option<(T, RunVerdict)>,
}

impl<T> Default for WorstInterval<T> {
    fn default() -> Self {
        Self { worst: None }
    }
}

impl<T> WorstInterval<T> {
    /// Takes in one interval. An inconclusive one decides nothing and is left out; of equals the first is kept.
    pub fn add(&mut self, when: T, verdict: RunVerdict) {
        let worse = self
            .worst
            .as_ref()
            .is_none_or(|(_, worst)| verdict.verdict > worst.verdict);
        if verdict.verdict != Verdict::Inconclusive && worse {
            self.worst = Some((when, verdict));
        }
    }

    /// The worst interval that was decided, and when; `None` when none was.
    #[must_use]
    pub fn worst(&self) -> Option<(&T, &RunVerdict)> {
        self.worst.as_ref().map(|(when, verdict)| (when, verdict))
    }

    /// The run's verdict: that of the worst decided interval, inconclusive when none was decided.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.worst
            .as_ref()
            .map_or(Verdict::Inconclusive, |(_, worst)| worst.verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(lower: Option<u64>, upper: Option<u64>) -> Bounds {
        Bounds { lower, upper }
    }

    #[test]
    fn what_was_excluded_stays_excluded() {
        let mut known = Known::default();
        assert_eq!(
            known.narrow("a", bounds(Some(3), Some(9))),
            bounds(Some(3), Some(9))
        );
        assert_eq!(
            known.narrow("a", bounds(None, Some(7))),
            bounds(Some(3), Some(7))
        );
        assert_eq!(
            known.narrow("a", bounds(Some(12), Some(20))),
            bounds(Some(7), Some(7))
        );
        assert_eq!(
            known.narrow("a", bounds(Some(1), Some(2))),
            bounds(Some(7), Some(7))
        );
        assert_eq!(known.narrow("b", bounds(None, None)), bounds(None, None));
    }

    #[test]
    fn the_worst_decided_interval_is_kept() {
        let run = |verdict| RunVerdict {
            verdict,
            findings: Vec::new(),
            targets: Vec::new(),
            recommendation: None,
        };
        let mut worst = WorstInterval::default();
        assert_eq!(worst.verdict(), Verdict::Inconclusive);
        for (when, verdict) in [
            (1, Verdict::Inconclusive),
            (2, Verdict::Pass),
            (3, Verdict::Warn),
            (4, Verdict::Inconclusive),
            (5, Verdict::Warn),
            (6, Verdict::Pass),
        ] {
            worst.add(when, run(verdict));
        }
        assert_eq!(worst.worst().unwrap(), (&3, &run(Verdict::Warn)));
        assert_eq!(worst.verdict(), Verdict::Warn);
    }
}
