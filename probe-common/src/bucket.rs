//! Histogram bucket arithmetic, bucket for bucket that of `hdrhistogram` at two significant digits.
//!
//! The layout is that of <https://docs.rs/hdrhistogram> for `new_with_bounds(1, MAX_VALUE_US, 2)`: 256 linear buckets
//! of 1 us, then for every further power of two 128 buckets of twice the width of the ones before. A bucket is at
//! most 1/128 (0.8 %) of its value wide.

/// Bits of the linear part: values below `1 << LINEAR_BITS` have a bucket of their own.
pub const LINEAR_BITS: u32 = 8;
/// Buckets added by each power of two above the linear part.
pub const HALF: u32 = 1 << (LINEAR_BITS - 1);
/// The largest value that is told apart, in microseconds (67.1 s); larger ones are counted as this one.
pub const MAX_VALUE_US: u32 = (1 << 26) - 1;
/// Buckets in one histogram.
#[allow(
    clippy::cast_possible_truncation,
    reason = "a few thousand; const code has no checked conversion"
)]
pub const BUCKETS: u32 = index_of(MAX_VALUE_US as u64) as u32 + 1;

/// The bucket that counts `value_us` (microseconds); always below [`BUCKETS`]. In 64 bits, as BPF computes.
#[inline(always)]
#[must_use]
#[allow(
    clippy::inline_always,
    reason = "the BPF target has no calls to spare on the per-sample path"
)]
pub const fn index_of(value_us: u64) -> u64 {
    const MAX: u64 = MAX_VALUE_US as u64;
    if value_us < 1 << LINEAR_BITS {
        return value_us;
    }
    let value = if value_us > MAX { MAX } else { value_us };
    let magnitude = bit_length(value >> LINEAR_BITS);
    // Without the linear part's lower half the sub-bucket starts at HALF, hence one HALF less than magnitude + 1.
    magnitude * HALF as u64 + (value >> magnitude)
}

/// How many bits a number below `1 << 18` has. BPF cannot count leading zeros, and what the compiler puts in their place
/// takes twice as long.
#[inline(always)]
#[allow(clippy::inline_always, reason = "as for `index_of`")]
const fn bit_length(value: u64) -> u64 {
    let (mut rest, mut bits) = (value, 0);
    if rest >= 1 << 16 {
        rest >>= 16;
        bits += 16;
    }
    if rest >= 1 << 8 {
        rest >>= 8;
        bits += 8;
    }
    if rest >= 1 << 4 {
        rest >>= 4;
        bits += 4;
    }
    if rest >= 1 << 2 {
        rest >>= 2;
        bits += 2;
    }
    // 0, 1, 2 or 3 is left.
    bits + rest - rest / 3
}

/// The lowest value, in microseconds, that bucket `index` counts.
#[must_use]
pub const fn lowest_value_of(index: u32) -> u32 {
    if index < 2 * HALF {
        return index;
    }
    let magnitude = index / HALF - 1;
    (index - magnitude * HALF) << magnitude
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bucket_starts_where_it_says() {
        for index in 0..BUCKETS {
            let low = lowest_value_of(index);
            assert_eq!(index_of(u64::from(low)), u64::from(index));
            if low > 0 {
                assert_eq!(index_of(u64::from(low) - 1), u64::from(index) - 1);
            }
        }
    }

    #[test]
    fn values_out_of_range_go_to_the_last_bucket() {
        assert_eq!(index_of(u64::MAX), u64::from(BUCKETS) - 1);
        assert_eq!(BUCKETS, 2560);
    }
}
