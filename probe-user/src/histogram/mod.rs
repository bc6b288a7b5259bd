//! Distributions of microsecond values, in hdrhistogram's layout.

use std::sync::LazyLock;

use hdrhistogram::Histogram;
use probe_common::bucket;

/// A distribution of one measure at one target. Values are microseconds, at two significant digits.
pub type Distribution = Histogram<u64>;

static EMPTY: LazyLock<Distribution> = LazyLock::new(|| {
    #[allow(
        clippy::expect_used,
        reason = "constants inside hdrhistogram's limits; the tests build it"
    )]
    Histogram::new_with_bounds(1, u64::from(bucket::MAX_VALUE_US), 2)
        .expect("valid constant bounds")
});

/// An empty distribution with the kernel side's range and precision.
#[must_use]
pub fn empty() -> Distribution {
    EMPTY.clone()
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
            histogram.saturating_record_n(u64::from(bucket::lowest_value_of(index)), count);
        }
    }
    histogram
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_buckets_are_hdrhistograms_buckets() {
        let mut histogram = empty();
        histogram.auto(false);
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
    fn counts_land_where_the_kernel_put_them() {
        let mut counts = vec![0; bucket::BUCKETS as usize];
        counts[bucket::index_of(10_100) as usize] = 3;
        let histogram = from_buckets(&counts);
        assert_eq!(histogram.len(), 3);
        assert!(histogram.equivalent(histogram.value_at_quantile(0.5), 10_100));
    }
}
