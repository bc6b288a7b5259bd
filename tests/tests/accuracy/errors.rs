//! Differences between what was said and what was on the wire.

use std::fmt;

/// Pairs of a value that was said and the true one, in microseconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Errors(Vec<(f64, f64)>);

impl Errors {
    pub(crate) fn push(&mut self, said_us: f64, true_us: f64) {
        self.0.push((said_us, true_us));
    }

    pub(crate) fn add(&mut self, more: &Self) {
        self.0.extend(&more.0);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The error at this rank, of the whole sorted by size, in microseconds.
    pub(crate) fn quantile(&self, quantile: f64) -> f64 {
        at(
            self.0.iter().map(|(said, truth)| (said - truth).abs()),
            quantile,
        )
    }

    /// Whether that share of the values is right up to `slack_us` + 1 %.
    pub(crate) fn quantile_within(&self, quantile: f64, slack_us: f64) -> bool {
        at(self.0.iter().map(beyond), quantile) <= slack_us
    }

    /// The share of values that are right up to `slack_us` + 1 %.
    pub(crate) fn share_within(&self, slack_us: f64) -> f64 {
        let good = self
            .0
            .iter()
            .filter(|pair| beyond(pair) <= slack_us)
            .count();
        share(good, self.0.len())
    }
}

/// What is left of the error beside 1 % of the value.
fn beyond((said, truth): &(f64, f64)) -> f64 {
    (said - truth).abs() - truth / 100.0
}

#[allow(
    clippy::cast_precision_loss,
    reason = "counts of a test's samples are far below 2^52"
)]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank within a test's samples"
)]
fn at(values: impl Iterator<Item = f64>, quantile: f64) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let rank = (quantile * values.len() as f64).ceil() as usize;
    values.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "n={}, median error {:.0} us, 99th percentile {:.0} us, {:.2} % within 100 us + 1 %",
            self.len(),
            self.quantile(0.5),
            self.quantile(0.99),
            100.0 * self.share_within(100.0)
        )
    }
}
