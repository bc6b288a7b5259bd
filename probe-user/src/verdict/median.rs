//! Decides medians. docs/verdicts.md says why the rule is what it is, and what it was measured to do.

use super::beta::binomial_at_least;
use super::bounds::{Bounds, quantile_bounds, sorted_bounds};
use super::policy::Policy;
use crate::histogram::Distribution;
use crate::measure::TargetMeasurement;

/// A sample this many times beyond a limit, or within it, is clear-cut.
const CLEAR_FACTOR: u64 = 2;

/// Samples as they were taken, or only how often each value came.
#[derive(Clone, Copy, Debug)]
pub(super) enum Samples<'a> {
    /// In order, microseconds: correlation can be seen.
    Ordered(&'a [u32]),
    /// Order unknown: taken to be independent.
    Unordered(&'a Distribution),
}

/// How samples lie about a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Split {
    /// Samples above it.
    pub above: u64,
    /// Independent samples that all of them are worth, as far as the order tells.
    pub worth: u64,
}

impl<'a> Samples<'a> {
    /// The path samples of a target: in order where the probe kept them.
    pub(super) fn path(measured: &'a TargetMeasurement) -> Self {
        match &measured.probe {
            Some(probe) if !probe.path_sequence.is_empty() => Self::Ordered(&probe.path_sequence),
            _ => Self::Unordered(&measured.distributions.path),
        }
    }

    pub(super) fn is_empty(self) -> bool {
        match self {
            Self::Ordered(sequence) => sequence.is_empty(),
            Self::Unordered(distribution) => distribution.is_empty(),
        }
    }

    /// How the samples lie about a limit.
    pub(super) fn against(self, limit: u64) -> Split {
        match self {
            Self::Ordered(sequence) => {
                let above: Vec<bool> = sequence.iter().map(|&x| u64::from(x) > limit).collect();
                let crossings = above.windows(2).filter(|pair| pair[0] != pair[1]).count();
                let count = above.iter().filter(|&&above| above).count();
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    clippy::cast_precision_loss,
                    reason = "a share of a small count"
                )]
                let worth = (above.len() as f64 * worth(above.len(), count, crossings)) as u64;
                Split {
                    above: u64::try_from(count).unwrap_or(u64::MAX),
                    worth,
                }
            }
            Self::Unordered(distribution) => {
                let at_most = distribution.lowest_equivalent(limit);
                let above = distribution
                    .iter_recorded()
                    .filter(|step| {
                        distribution.lowest_equivalent(step.value_iterated_to()) > at_most
                    })
                    .map(|step| step.count_at_value())
                    .sum();
                Split {
                    above,
                    worth: distribution.len(),
                }
            }
        }
    }
}

/// A median and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Median {
    /// Samples.
    pub n: u64,
    /// The samples' median, microseconds; of an even number the lower middle one.
    pub value: u64,
    /// Beyond a limit when `lower` is; within it when `upper` is.
    pub bounds: Bounds,
}

impl Median {
    /// `None` without samples.
    pub(super) fn of(samples: Samples<'_>, policy: &Policy) -> Option<Self> {
        match samples {
            Samples::Ordered(sequence) => ordered(sequence, policy),
            Samples::Unordered(distribution) => unordered(distribution, policy),
        }
    }
}

fn unordered(samples: &Distribution, policy: &Policy) -> Option<Median> {
    if samples.is_empty() {
        return None;
    }
    let strict = quantile_bounds(samples, 0.5, policy.alpha_beyond(), policy.alpha_within());
    Some(Median {
        n: samples.len(),
        value: samples.lowest_equivalent(samples.value_at_quantile(0.5)),
        bounds: with_clear_cut(
            strict,
            quantile_bounds(samples, 0.5, policy.alpha(), policy.alpha()),
        ),
    })
}

fn ordered(sequence: &[u32], policy: &Policy) -> Option<Median> {
    let mut sorted = sequence.to_vec();
    sorted.sort_unstable();
    let value = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    // Both tests are monotone in the limit, so their bounds are found by bisection over the samples.
    let beyond = |at: u32| supported(sequence.iter().map(|&x| x >= at), policy.alpha_beyond());
    let within = |at: u32| supported(sequence.iter().map(|&x| x <= at), policy.alpha_within());
    let strict = Bounds {
        lower: sorted
            .partition_point(|&at| beyond(at))
            .checked_sub(1)
            .and_then(|i| sorted.get(i))
            .map(|&x| u64::from(x)),
        upper: sorted
            .get(sorted.partition_point(|&at| !within(at)))
            .map(|&x| u64::from(x)),
    };
    let plain = sorted_bounds(&sorted, 0.5, policy.alpha());
    Some(Median {
        n: u64::try_from(sequence.len()).unwrap_or(u64::MAX),
        value: u64::from(value),
        bounds: with_clear_cut(strict, plain),
    })
}

/// Where there are few samples, plain bounds decide what is beyond or within a limit by a factor.
fn with_clear_cut(strict: Bounds, plain: Bounds) -> Bounds {
    let lower = plain.lower.map(|value| value / CLEAR_FACTOR);
    let upper = plain.upper.map(|value| value.saturating_mul(CLEAR_FACTOR));
    Bounds {
        lower: strict.lower.max(lower),
        upper: match (strict.upper, upper) {
            (Some(strict), Some(clear)) => Some(strict.min(clear)),
            (strict, clear) => strict.or(clear),
        },
    }
}

/// Whether the samples that agree (true) show, at error probability `alpha`, that more than half of all do.
///
/// Monotone: with one more sample agreeing it is never less supported. The number of samples is first cut down to an
/// effective one by the correlation that the order of agreeing and contradicting samples shows. A rule that did only
/// that would not be monotone, so what counts is the best of all sequences with at least the contradicting samples
/// of this one.
fn supported(agree: impl Iterator<Item = bool>, alpha: f64) -> bool {
    let agree: Vec<bool> = agree.collect();
    let n = agree.len();
    let against = agree.iter().filter(|&&yes| !yes).count();
    if tail(n, against, usize::MAX) > alpha {
        return false;
    }
    let mut most = against;
    while most < n && tail(n, most + 1, usize::MAX) <= alpha {
        most += 1;
    }
    let crossings = most_crossings(&agree, most);
    (against..=most).any(|count| {
        crossings
            .get(count)
            .copied()
            .flatten()
            .is_some_and(|crossings| tail(n, count, crossings) <= alpha)
    })
}

/// The probability of as few as `against` of `n` samples contradicting if half of all did, with n cut down to what
/// it is worth. `crossings` is how often neighbours differ.
#[allow(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
fn tail(n: usize, against: usize, crossings: usize) -> f64 {
    let worth = worth(n, against, crossings);
    let (n, against) = (n as f64, against as f64);
    binomial_at_least(n * worth, 0.5, (n - against) * worth)
}

/// What share of `n` samples would be worth as much if they were independent: (1 - r) / (1 + r), the large-sample
/// value for an AR(1) series, with r estimated from how seldom neighbours differ.
#[allow(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
fn worth(n: usize, against: usize, crossings: usize) -> f64 {
    let (n, against, crossings) = (n as f64, against as f64, crossings as f64);
    // Among independent samples as many neighbours differ on average.
    let expected = 2.0 * against * (n - against) / n;
    let correlation = if expected > 0.0 {
        (1.0 - crossings / expected).max(0.0)
    } else {
        0.0
    };
    (1.0 - correlation) / (1.0 + correlation)
}

/// For each number of contradicting samples up to `most`, the largest number of crossings any sequence has that
/// contradicts wherever `agree` does; `None` where there is no such sequence.
fn most_crossings(agree: &[bool], most: usize) -> Vec<Option<usize>> {
    // Best crossings so far, by contradicting samples so far, for sequences ending in agreement and in contradiction.
    let mut ends_yes: Vec<Option<usize>> = vec![None; most + 1];
    let mut ends_no: Vec<Option<usize>> = vec![None; most + 1];
    for (index, &yes) in agree.iter().enumerate() {
        for count in (0..=most).rev() {
            let (was_yes, was_no) = (ends_yes[count], ends_no[count]);
            ends_yes[count] = match index {
                _ if !yes => None,
                0 => (count == 0).then_some(0),
                _ => was_yes.max(was_no.map(|crossings| crossings + 1)),
            };
            // `count - 1` still holds the previous sample's values: counts run downwards.
            ends_no[count] = match (index, count) {
                (_, 0) => None,
                (0, _) => (count == 1).then_some(0),
                _ => ends_no[count - 1].max(ends_yes[count - 1].map(|crossings| crossings + 1)),
            };
        }
    }
    ends_yes
        .into_iter()
        .zip(ends_no)
        .map(|(yes, no)| yes.max(no))
        .collect()
}

#[cfg(test)]
mod tests;
