//! One-sided confidence bounds: order statistics for quantiles, Clopper and Pearson's for rates.

use super::beta::{binomial_at_least, regularized};
use crate::histogram::Distribution;

/// One-sided bounds; each holds with the confidence it was made for. `None` where the samples do not reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The true value is at least this.
    pub lower: Option<u64>,
    /// The true value is at most this.
    pub upper: Option<u64>,
}

/// How many samples, all within a limit, it takes before a quantile can be decided to be within it; the same number
/// of segments without a loss before a rate of `1 - quantile` can.
///
/// `quantile` and `confidence` from 0 to 1, exclusive.
#[must_use]
pub fn samples_needed(quantile: f64, confidence: f64) -> u64 {
    let needed = ((1.0 - confidence).ln() / quantile.ln()).ceil();
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float to integer cast saturates, which is right here"
    )]
    let needed = needed as u64;
    needed.max(1)
}

/// Rank, from 1, of the order statistic that bounds the quantile from below with error at most `alpha`.
fn lower_rank(n: u64, quantile: f64, alpha: f64) -> Option<u64> {
    // x(r) is above the quantile when fewer than r samples are below it.
    last_rank(n, |r| at_most(n, quantile, r - 1) <= alpha)
}

/// Rank, from 1, of the order statistic that bounds the quantile from above with error at most `alpha`.
fn upper_rank(n: u64, quantile: f64, alpha: f64) -> Option<u64> {
    // Mirrored: counting ranks from the largest sample down.
    let from_top = last_rank(n, |r| at_least(n, quantile, n + 1 - r) <= alpha)?;
    Some(n + 1 - from_top)
}

/// The largest r in 1..=n for which `holds`; `holds` is true up to some rank and false from there on.
fn last_rank(n: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut yes, mut no) = (0, n.saturating_add(1));
    while no - yes > 1 {
        let middle = yes + (no - yes) / 2;
        if holds(middle) {
            yes = middle;
        } else {
            no = middle;
        }
    }
    (yes > 0).then_some(yes)
}

#[allow(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
fn at_least(n: u64, p: f64, k: u64) -> f64 {
    binomial_at_least(n as f64, p, k as f64)
}

fn at_most(n: u64, p: f64, k: u64) -> f64 {
    // The complement keeps small tails exact.
    at_least(n, 1.0 - p, n - k)
}

/// Distribution-free bounds of `quantile` from independent samples, each one-sided at its own error probability.
///
/// The lower bound is its bucket's lowest value and the upper bound its bucket's highest, so both also hold for the
/// values before they were put into buckets.
#[must_use]
pub fn quantile_bounds(
    samples: &Distribution,
    quantile: f64,
    alpha_lower: f64,
    alpha_upper: f64,
) -> Bounds {
    let n = samples.len();
    Bounds {
        lower: lower_rank(n, quantile, alpha_lower)
            .and_then(|rank| value_at_rank(samples, rank))
            .map(|value| samples.lowest_equivalent(value)),
        upper: upper_rank(n, quantile, alpha_upper)
            .and_then(|rank| value_at_rank(samples, rank))
            .map(|value| samples.highest_equivalent(value)),
    }
}

/// The same bounds from samples sorted in rising order, exact to the microsecond.
pub(super) fn sorted_bounds(sorted: &[u32], quantile: f64, alpha: f64) -> Bounds {
    let n = u64::try_from(sorted.len()).unwrap_or(u64::MAX);
    let at = |rank: u64| {
        let index = usize::try_from(rank.checked_sub(1)?).ok()?;
        sorted.get(index).map(|&sample| u64::from(sample))
    };
    Bounds {
        lower: lower_rank(n, quantile, alpha).and_then(at),
        upper: upper_rank(n, quantile, alpha).and_then(at),
    }
}

/// The `rank`-th smallest sample, from 1.
fn value_at_rank(samples: &Distribution, rank: u64) -> Option<u64> {
    let mut seen = 0;
    samples.iter_recorded().find_map(|step| {
        seen += step.count_at_value();
        (seen >= rank).then(|| step.value_iterated_to())
    })
}

/// Exact one-sided bounds of a rate from `events` among `n`, in parts per million, each at error probability `alpha`.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
pub fn rate_bounds(events: u64, n: u64, alpha: f64) -> Bounds {
    if n == 0 {
        return Bounds::default();
    }
    let events = events.min(n);
    let (k, rest) = (events as f64, (n - events) as f64);
    let lower = if events == 0 {
        0.0
    } else {
        root(|p| regularized(k, rest + 1.0, p) - alpha)
    };
    let upper = if events == n {
        1.0
    } else {
        root(|p| alpha - (1.0 - regularized(k + 1.0, rest, p)))
    };
    Bounds {
        lower: Some(parts_per_million(lower, f64::floor)),
        upper: Some(parts_per_million(upper, f64::ceil)),
    }
}

/// The root of a function that rises from below 0 at 0 to above 0 at 1.
fn root(f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if f(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

fn parts_per_million(share: f64, round: fn(f64) -> f64) -> u64 {
    // The last digits of a bisection are noise and must not tip the rounding.
    let scaled = round((share * 1e12).round() / 1e6);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to a million"
    )]
    let whole = scaled.clamp(0.0, 1e6) as u64;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram;

    fn of(values: impl IntoIterator<Item = u64>) -> Distribution {
        let mut samples = histogram::empty();
        for value in values {
            samples.record(value).unwrap();
        }
        samples
    }

    #[test]
    fn samples_needed_are_those_of_the_table() {
        for (quantile, n) in [(0.5, 5), (0.9, 29), (0.99, 299), (0.95, 59)] {
            assert_eq!(samples_needed(quantile, 0.95), n);
            let all_good = |n| quantile_bounds(&of((0..n).map(|_| 10)), quantile, 0.05, 0.05).upper;
            assert_eq!(all_good(n - 1), None);
            assert_eq!(all_good(n), Some(10));
        }
    }

    #[test]
    fn two_of_fifteen_beyond_show_a_p99_exceeded() {
        let with_slow = |slow: u64| {
            let values = (0..15).map(|i| if i < slow { 200 } else { 10 });
            quantile_bounds(&of(values), 0.99, 0.05, 0.05)
        };
        assert_eq!(with_slow(1).lower, Some(10));
        assert_eq!(with_slow(2).lower, Some(200));
        assert_eq!(with_slow(15).upper, None);
    }

    #[test]
    fn median_bounds_of_fifteen_are_the_tabulated_ranks() {
        let bounds = quantile_bounds(&of(1..=15), 0.5, 0.05, 0.05);
        assert_eq!((bounds.lower, bounds.upper), (Some(4), Some(12)));
    }

    #[test]
    fn bounds_of_nothing_are_nothing() {
        assert_eq!(quantile_bounds(&of([]), 0.5, 0.05, 0.05), Bounds::default());
        assert_eq!(rate_bounds(0, 0, 0.05), Bounds::default());
    }

    #[test]
    fn rate_bounds_are_clopper_and_pearsons() {
        // Without a loss the upper bound is 1 - alpha^(1/n).
        assert!(rate_bounds(0, 298, 0.05).upper.unwrap() > 10_000);
        assert!(rate_bounds(0, 299, 0.05).upper.unwrap() <= 10_000);
        assert!(rate_bounds(0, 58, 0.05).upper.unwrap() > 50_000);
        assert!(rate_bounds(0, 59, 0.05).upper.unwrap() <= 50_000);
        // Tabulated two-sided 90 % interval for 5 of 20: 0.1041 to 0.4556.
        let bounds = rate_bounds(5, 20, 0.05);
        assert_eq!(bounds.lower.unwrap() / 100, 1_040);
        assert_eq!(bounds.upper.unwrap() / 100, 4_555);
        assert_eq!(rate_bounds(7, 7, 0.05).upper, Some(1_000_000));
        // More events than trials cannot be; it must not panic.
        assert_eq!(rate_bounds(9, 7, 0.05), rate_bounds(7, 7, 0.05));
    }
}
