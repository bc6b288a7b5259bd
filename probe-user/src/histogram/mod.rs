//! Distributions of microsecond values, in hdrhistogram's layout.

use std::sync::LazyLock;

use hdrhistogram::Histogram;
use probe_common::bucket;

/// A distribution of one measure at one target. Values are microseconds, at two significant digits.
pub type Distribution = Histogram<u64>;

/// Values below this take the layout's linear part only, which is all an empty distribution allocates.
const LINEAR: u64 = (1 << bucket::LINEAR_BITS) - 1;

static EMPTY: LazyLock<Distribution> = LazyLock::new(|| bounded(LINEAR));

fn bounded(highest: u64) -> Distribution {
    #[allow(
        clippy::expect_used,
        reason = "constants inside hdrhistogram's limits; the tests build them"
    )]
    Histogram::new_with_bounds(1, highest, 2).expect("valid constant bounds")
}

/// An empty distribution with the kernel side's precision.
///
/// It starts at 2 KiB and grows with what is recorded (20 KiB at most): most measures of most targets stay empty.
/// Record with [`record`]: hdrhistogram's `saturating_record` would clamp instead of growing.
#[must_use]
pub fn empty() -> Distribution {
    let mut distribution = EMPTY.clone();
    distribution.auto(true);
    distribution
}

/// An empty distribution over the kernel side's whole range, for formats whose header tells the range.
#[must_use]
pub fn full_range() -> Distribution {
    bounded(u64::from(bucket::MAX_VALUE_US))
}

/// Counts `count` samples of `value_us`; values beyond the kernel side's range are counted as its largest.
pub fn record(distribution: &mut Distribution, value_us: u64, count: u64) {
    // Growing fails only where a usize cannot index 2560 buckets.
    let _ = distribution.record_n(value_us.min(u64::from(bucket::MAX_VALUE_US)), count);
}

/// Turns `counts`, one per kernel-side bucket, into a distribution.
///
/// Each bucket's count is recorded at the bucket's lowest value; hdrhistogram has the same buckets, so quantiles are
/// those of the kernel's samples to within one bucket (0.8 %). Counts beyond the last bucket are ignored.
#[must_use]
pub fn from_buckets(counts: &[u64]) -> Distribution {
    let mut histogram = empty();
    for (index, &count) in (0..bucket::BUCKETS).zip(counts) {
        if count > 0 {
            record(
                &mut histogram,
                u64::from(bucket::lowest_value_of(index)),
                count,
            );
        }
    }
    histogram
}

/// The distribution of `samples`, microseconds; larger ones than it tells apart count as its largest.
#[must_use]
pub fn of_sequence(samples: &[u32]) -> Distribution {
    let mut histogram = empty();
    for &sample in samples {
        record(&mut histogram, u64::from(sample), 1);
    }
    histogram
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_buckets_are_hdrhistograms_buckets() {
        let histogram = full_range();
        assert_eq!(histogram.distinct_values(), bucket::BUCKETS as usize);
        for index in 0..bucket::BUCKETS {
            let low = u64::from(bucket::lowest_value_of(index));
            assert_eq!(histogram.lowest_equivalent(low), low);
            assert_eq!(
                histogram.next_non_equivalent(low),
                if index + 1 < bucket::BUCKETS {
                    u64::from(bucket::lowest_value_of(index + 1))
                } else {
                    u64::from(bucket::MAX_VALUE_US) + 1
                }
            );
        }
    }

    #[test]
    fn an_empty_distribution_grows_to_the_whole_range_and_no_further() {
        let mut histogram = empty();
        assert_eq!(histogram.distinct_values(), 256);
        record(&mut histogram, u64::MAX, 2);
        record(&mut histogram, 12_000, 1);
        assert_eq!(histogram.distinct_values(), bucket::BUCKETS as usize);
        assert_eq!(histogram.max(), u64::from(bucket::MAX_VALUE_US));
        let mut full = full_range();
        full.add(&histogram).unwrap();
        assert_eq!(full.len(), 3);
    }

    #[test]
    fn counts_land_where_the_kernel_put_them() {
        let mut counts = vec![0; bucket::BUCKETS as usize];
        counts[usize::try_from(bucket::index_of(10_100)).unwrap()] = 3;
        let histogram = from_buckets(&counts);
        assert_eq!(histogram.len(), 3);
        assert!(histogram.equivalent(histogram.value_at_quantile(0.5), 10_100));
    }
}
