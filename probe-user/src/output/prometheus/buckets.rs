//! A distribution as Prometheus buckets, classic and native.
//!
//! A bucket of [`Distribution`] is at most 0.8 % wide and may straddle a Prometheus bound. It is counted whole where
//! its highest value belongs, which is the value that JSON quantiles report: no sample counts as faster than it was.

use std::fmt;

use prometheus_client::encoding::{
    MetricEncoder, NativeHistogram, NativeHistogramBuckets, NoLabelSet,
};
use prometheus_client::metrics::histogram::{
    DEFAULT_NATIVE_HISTOGRAM_ZERO_THRESHOLD, exponential_buckets,
};

use crate::histogram::Distribution;

/// Classic bounds are those of etcd's own peer round-trip histogram: 0.1 ms x 2^n, 16 of them.
const BOUNDS: u16 = 16;
const FIRST_BOUND_SECONDS: f64 = 0.000_1;
/// Native buckets grow by 2^(2^-5), 2.2 %: as fine as is useful with samples grouped to 0.8 %.
const SCHEMA: u8 = 5;
/// Fewer empty native buckets than this are written out; more of them start a new span.
const GAP: i32 = 3;

/// A distribution ready to be encoded: a kilobyte or so, where the distribution itself has up to twenty.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Buckets {
    sum_seconds: f64,
    samples: u64,
    /// Upper bound in seconds and count, not cumulative.
    classic: Vec<(f64, u64)>,
    native: Native,
}

impl Buckets {
    /// Sorts `distribution` (microseconds) into buckets (seconds).
    pub(super) fn new(distribution: &Distribution) -> Self {
        let mut classic: Vec<(f64, u64)> = exponential_buckets(FIRST_BOUND_SECONDS, 2.0, BOUNDS)
            .chain([f64::INFINITY])
            .map(|bound| (bound, 0))
            .collect();
        let mut native = Native::default();
        let mut sum_seconds = 0.0;
        for step in distribution.iter_recorded() {
            let (value, count) = (step.value_iterated_to(), step.count_at_value());
            let middle = seconds(distribution.median_equivalent(value));
            sum_seconds += middle * as_f64(count);
            let highest = seconds(distribution.highest_equivalent(value));
            if let Some((_, here)) = classic.iter_mut().find(|(bound, _)| highest <= *bound) {
                *here += count;
            }
            native.add(highest, count);
        }
        Self {
            sum_seconds,
            samples: distribution.len(),
            classic,
            native,
        }
    }

    /// Samples.
    pub(super) fn count(&self) -> u64 {
        self.samples
    }

    /// Writes the sample of one label set; formats without native histograms leave those buckets out.
    pub(super) fn encode(&self, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_histogram_with_native::<NoLabelSet>(
            self.sum_seconds,
            self.samples,
            &self.classic,
            None,
            NativeHistogram {
                schema: i32::from(SCHEMA),
                zero_threshold: DEFAULT_NATIVE_HISTOGRAM_ZERO_THRESHOLD,
                zero_count: self.native.zero,
                negative: NativeHistogramBuckets {
                    spans: &[],
                    deltas: &[],
                },
                positive: NativeHistogramBuckets {
                    spans: &self.native.spans,
                    deltas: &self.native.deltas,
                },
                created: None,
            },
        )
    }
}

/// Native buckets in their wire form: spans of (offset, length) and the change of count from bucket to bucket.
#[derive(Clone, Debug, Default, PartialEq)]
struct Native {
    zero: u64,
    spans: Vec<(i32, u32)>,
    deltas: Vec<i64>,
    /// Index of the last bucket written.
    last: i32,
    /// Its count.
    height: i64,
}

impl Native {
    /// Counts `count` samples of `value_seconds`, which is not smaller than the value before.
    fn add(&mut self, value_seconds: f64, count: u64) {
        if value_seconds == 0.0 {
            self.zero += count;
            return;
        }
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let index = index_of(value_seconds);
        match (self.deltas.last_mut(), index - self.last) {
            (Some(delta), 0) => {
                *delta += count;
                self.height += count;
            }
            (Some(_), step) if step <= GAP => {
                for _ in 1..step {
                    self.push(0);
                }
                self.push(count);
            }
            (Some(_), step) => {
                self.spans.push((step - 1, 0));
                self.push(count);
            }
            (None, _) => {
                self.spans.push((index, 0));
                self.push(count);
            }
        }
        self.last = index;
    }

    fn push(&mut self, count: i64) {
        self.deltas.push(count - self.height);
        self.height = count;
        if let Some((_, length)) = self.spans.last_mut() {
            *length += 1;
        }
    }
}

/// The native bucket of a value: bucket `i` holds (base^(i-1), base^i] with base = 2^(2^-SCHEMA).
#[allow(
    clippy::cast_possible_truncation,
    reason = "1 us to 67 s lie within bucket -638 to 194"
)]
fn index_of(value_seconds: f64) -> i32 {
    (value_seconds.log2() * f64::from(1_u32 << SCHEMA)).ceil() as i32
}

fn seconds(micros: u64) -> f64 {
    as_f64(micros) / 1e6
}

#[allow(
    clippy::cast_precision_loss,
    reason = "exact up to 2^53, Prometheus has no more either"
)]
fn as_f64(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram;

    fn of(values: &[u64]) -> Buckets {
        let mut distribution = histogram::empty();
        for &value in values {
            histogram::record(&mut distribution, value, 1);
        }
        Buckets::new(&distribution)
    }

    fn bound_of(value_us: u64) -> f64 {
        let buckets = of(&[value_us]);
        buckets.classic.iter().find(|(_, n)| *n == 1).unwrap().0
    }

    #[test]
    fn classic_bounds_are_etcds() {
        let bounds: Vec<_> = of(&[]).classic.iter().map(|(bound, _)| *bound).collect();
        assert_eq!(bounds.len(), 17);
        assert!((bounds[0] - 0.000_1).abs() < f64::EPSILON);
        assert!((bounds[15] - 3.2768).abs() < f64::EPSILON);
        assert!(bounds[16].is_infinite());
    }

    #[test]
    fn a_bucket_counts_where_its_highest_value_belongs() {
        for (value, bound) in [
            (0, 0.000_1),
            (100, 0.000_1),
            (101, 0.000_2),
            (399, 0.000_4),
            (400, 0.000_8),
            (10_000, 0.012_8),
        ] {
            assert!((bound_of(value) - bound).abs() < 1e-12, "{value}");
        }
        assert!(bound_of(4_000_000).is_infinite());
    }

    #[test]
    fn the_sum_is_within_half_a_bucket() {
        let buckets = of(&[10_000, 20_000, 30_000]);
        assert_eq!(buckets.count(), 3);
        assert!((buckets.sum_seconds - 0.06).abs() < 0.06 * 0.004);
    }

    #[test]
    fn native_buckets_add_up_and_bracket_their_values() {
        let values = [
            0, 1, 95, 96, 97, 500, 10_000, 10_050, 10_300, 1_000_000, 67_000_000,
        ];
        let native = of(&values).native;
        let (mut index, mut height, mut found) = (0, 0, Vec::new());
        let mut deltas = native.deltas.iter();
        for &(offset, length) in &native.spans {
            index += offset;
            for _ in 0..length {
                height += deltas.next().unwrap();
                found.extend((0..height).map(|_| index));
                index += 1;
            }
        }
        assert!(deltas.next().is_none());
        assert_eq!(native.zero, 1);
        assert_eq!(found.len(), values.len() - 1);
        let layout = histogram::full_range();
        for (value, index) in values[1..].iter().zip(found) {
            let highest = seconds(layout.highest_equivalent(*value));
            let upper = (f64::from(index) / 32.0).exp2();
            let lower = (f64::from(index - 1) / 32.0).exp2();
            assert!(
                lower < highest && highest <= upper * (1.0 + 1e-12),
                "{value}: {lower} {upper}"
            );
        }
    }
}
