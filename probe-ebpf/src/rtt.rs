//! RTT samples.

use aya_ebpf::bindings::{BPF_TCP_CLOSE_WAIT, BPF_TCP_ESTABLISHED};
use probe_common::bucket;
use probe_common::cells::{Counter, Measure};
use probe_common::own::PACED;
use probe_common::stats::Stat;

use crate::cells;
use crate::context::Context;
use crate::flow::{self, ESTABLISHED, Flow};
use crate::maps::OWN;

/// Segments sent since the last count after which a sample counts them again.
const SEGMENTS_BETWEEN_COUNTS: u32 = 32;

/// The kernel took an RTT sample: once per round trip in which data is acknowledged.
#[inline(always)]
pub(crate) fn sampled(ctx: Context) {
    let Some(flow) = flow::find(ctx) else { return };
    if flow.stage != ESTABLISHED {
        return;
    }
    let state = ctx.state();
    // The acknowledgement of a FIN is sampled too.
    if state != BPF_TCP_ESTABLISHED && state != BPF_TCP_CLOSE_WAIT {
        return;
    }
    let Some(sample_us) = sample(ctx) else { return };
    // With TCP timestamps the kernel also samples segments that were sent twice; the timestamp counts milliseconds.
    if sample_us.is_multiple_of(1000) && ctx.total_retrans() != 0 {
        cells::count(flow.slot, Counter::RetransmittedSamples, 1);
        return;
    }
    if flow.own_cookie != 0 && is_paced(flow.own_cookie) {
        cells::record(flow.slot, Measure::Path, sample_us);
        // The value first: who sees the count rise may read it.
        cells::set(flow.slot, Counter::LastPathUs, u64::from(sample_us));
        cells::count(flow.slot, Counter::PathSamples, 1);
        return;
    }
    segment(ctx, flow, sample_us);
}

/// The sample, in microseconds.
///
/// Since 6.10 argument 0 is the sample and argument 1 the new smoothed RTT, while the context still has the old one
/// (`tcp_rtt_estimator` in `net/ipv4/tcp_input.c`). Argument 0 shares its storage with `reply`, so the sample is computed
/// from the other two: the estimator adds an eighth of `sample - old` to the old value. Both smoothed values are x 8.
#[inline(always)]
fn sample(ctx: Context) -> Option<u32> {
    let old = ctx.srtt_us();
    let new = ctx.arg1();
    if new == 0 {
        cells::note(Stat::SmoothedSeen);
        return (old != 0).then_some(old >> 3);
    }
    let sample_us = if old == 0 {
        new >> 3
    } else {
        new.wrapping_sub(old).wrapping_add(old >> 3)
    };
    if ctx.arg0() != sample_us {
        cells::stat(Stat::RawDisagreements);
    }
    cells::note(Stat::RawSeen);
    Some(sample_us)
}

#[inline(always)]
fn is_paced(cookie: u64) -> bool {
    // SAFETY: entries are removed only by user space, after the probe's socket is closed.
    match unsafe { OWN.get(&cookie) } {
        // Read anew each time: user space ends the pacing in the middle of a connection.
        // SAFETY: a live map value, aligned.
        Some(own) => unsafe { core::ptr::read_volatile(&raw const own.phase) == PACED },
        None => false,
    }
}

#[inline(always)]
fn segment(ctx: Context, flow: &mut Flow, sample_us: u32) {
    let index = bucket::index_of(sample_us);
    cells::add_to_bucket(flow.slot, Measure::Segment, index, 1);
    let interval = cells::interval();
    if flow.interval != interval {
        flow.interval = interval;
        flow.min_bucket = index;
        cells::add_to_bucket(flow.slot, Measure::SegmentMin, index, 1);
        flow.count_segments(ctx, 1);
        return;
    }
    if index < flow.min_bucket {
        // Moved, so that the histogram's growth over an interval is one minimum per connection.
        cells::add_to_bucket(flow.slot, Measure::SegmentMin, flow.min_bucket, u64::MAX);
        cells::add_to_bucket(flow.slot, Measure::SegmentMin, index, 1);
        flow.min_bucket = index;
    }
    flow.count_segments(ctx, SEGMENTS_BETWEEN_COUNTS);
}
