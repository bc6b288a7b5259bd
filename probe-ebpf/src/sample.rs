//! Where a sample is counted.

use core::hint::cold_path;

use probe_common::bucket;
use probe_common::cells::{Counter, Measure};

use crate::cells;

/// The smallest sample of a connection within one report interval. All zero means none yet: intervals count from 1.
#[repr(C)]
pub(crate) struct Minimum {
    /// The report interval that `bucket` is about.
    pub(crate) interval: u32,
    /// Bucket of the smallest sample.
    pub(crate) bucket: u32,
}

/// Whether a sample is taken for an acknowledged retransmission's. With TCP timestamps the kernel samples those too, and
/// the timestamp counts milliseconds (`tcp_ack_update_rtt` in net/ipv4/tcp_input.c).
#[inline(always)]
pub(crate) fn is_retransmission(sample_us: u64, may_be: bool) -> bool {
    may_be && sample_us.is_multiple_of(1000)
}

/// Counts a sample of an acknowledged retransmission.
#[inline(always)]
pub(crate) fn retransmission(slot: u32) {
    cells::count(slot, Counter::RetransmittedSamples, 1);
}

/// Counts a sample of a paced segment.
#[inline(always)]
pub(crate) fn path(slot: u32, sample_us: u64) {
    cells::record(slot, Measure::Path, sample_us);
    // The value first: who sees the count rise may read it.
    cells::set(slot, Counter::LastPathUs, sample_us);
    cells::count(slot, Counter::PathSamples, 1);
}

/// Counts a sample of any other segment in the running interval.
#[inline(always)]
pub(crate) fn segment(slot: u32, sample_us: u64, minimum: &mut Minimum, interval: u64) {
    if u64::from(minimum.interval) == interval {
        further_segment(slot, sample_us, minimum);
    } else {
        first_segment(slot, sample_us, minimum, interval);
    }
}

/// The connection's first in the interval.
#[inline(always)]
pub(crate) fn first_segment(slot: u32, sample_us: u64, minimum: &mut Minimum, interval: u64) {
    let index = bucket::index_of(sample_us);
    minimum.interval = interval as u32;
    minimum.bucket = index as u32;
    cells::add_to_bucket(slot, Measure::SegmentMin, index, 1);
    cells::add_to_bucket(slot, Measure::Segment, index, 1);
}

/// A further one.
#[inline(always)]
pub(crate) fn further_segment(slot: u32, sample_us: u64, minimum: &mut Minimum) {
    let index = bucket::index_of(sample_us);
    if index < u64::from(minimum.bucket) {
        cold_path();
        // Moved, so that the histogram's growth over an interval is one minimum per connection.
        let moved = u64::from(minimum.bucket);
        cells::add_to_bucket(slot, Measure::SegmentMin, moved, u64::MAX);
        cells::add_to_bucket(slot, Measure::SegmentMin, index, 1);
        minimum.bucket = index as u32;
    }
    // Last, because nothing is read past a locked addition until it is done.
    cells::add_to_bucket(slot, Measure::Segment, index, 1);
}
