//! RTT samples.

use core::hint::cold_path;

use aya_ebpf::bindings::{BPF_TCP_CLOSE_WAIT, BPF_TCP_ESTABLISHED};
use probe_common::own::PACED;
use probe_common::stats::Stat;

use crate::context::Context;
use crate::flow::{self, ESTABLISHED, Flow};
use crate::maps::OWN;
use crate::{cells, config, reconstruct, sample};

/// Segments sent since the last count after which a sample counts them again.
const SEGMENTS_BETWEEN_COUNTS: u32 = 32;

/// The kernel took an RTT sample: once per round trip in which data is acknowledged.
#[inline(always)]
pub(crate) fn sampled(ctx: Context) {
    let Some(flow) = flow::find(ctx) else { return };
    if flow.stage != ESTABLISHED {
        cold_path();
        return;
    }
    let state = ctx.state();
    // The acknowledgement of a FIN is sampled too.
    if state != BPF_TCP_ESTABLISHED && state != BPF_TCP_CLOSE_WAIT {
        cold_path();
        return;
    }
    let paced = if flow.own_cookie == 0 {
        false
    } else {
        cold_path();
        is_paced(flow.own_cookie)
    };
    let may_be = flow.may_sample_retransmission(ctx);
    let (sample_us, source, of_retransmission) = if let Some(sample_us) = raw(ctx) {
        let of_retransmission = sample::is_retransmission(sample_us, may_be);
        (sample_us, Stat::RawSeen, of_retransmission)
    } else if ctx.may_read_kernel() && reconstruct::is_on() {
        cold_path();
        if !paced {
            count_segments(ctx, flow);
        }
        reconstruct::begin(ctx, flow.slot, paced, may_be);
        return;
    } else if let Some(sample_us) = smoothed(ctx) {
        // What an estimate was made of does not show.
        (sample_us, Stat::SmoothedSeen, false)
    } else {
        return;
    };
    if of_retransmission {
        cold_path();
        cells::note(source);
        sample::retransmission(flow.slot);
    } else if paced {
        cold_path();
        cells::note(source);
        sample::path(flow.slot, sample_us);
    } else if sample::segment(flow.slot, sample_us, &mut flow.minimum) {
        // Where samples come from does not change: a look per interval is enough.
        cold_path();
        cells::note(source);
        flow.count_segments(ctx, 1);
    } else {
        flow.count_segments(ctx, SEGMENTS_BETWEEN_COUNTS);
    }
}

/// The sample as it comes with the callback, in microseconds.
///
/// Since 6.10 argument 0 is the sample and argument 1 the new smoothed RTT, while the context still has the old one
/// (`tcp_rtt_estimator` in `net/ipv4/tcp_input.c`). Argument 0 shares its storage with `reply`, so the sample is computed
/// from the other two.
#[inline(always)]
fn raw(ctx: Context) -> Option<u32> {
    let new = ctx.arg1();
    if new == 0 || config::raw_ignored() {
        cold_path();
        return None;
    }
    let sample_us = difference(ctx.srtt_us(), new);
    if ctx.arg0() != sample_us {
        cold_path();
        cells::stat(Stat::RawDisagreements);
    }
    Some(sample_us)
}

/// The sample that took the smoothed RTT from `old` to `new`: the estimator adds an eighth of `sample - old`. Both are
/// microseconds x 8, and 0 before the first sample.
#[inline(always)]
pub(crate) fn difference(old: u32, new: u32) -> u32 {
    if old == 0 {
        new >> 3
    } else {
        new.wrapping_sub(old).wrapping_add(old >> 3)
    }
}

/// The smoothed RTT before the sample, in the sample's place.
#[inline(always)]
fn smoothed(ctx: Context) -> Option<u32> {
    let old = ctx.srtt_us();
    (old != 0).then_some(old >> 3)
}

/// Counts what was sent, without the sample at hand: each interval's first time, and now and then.
#[inline(always)]
fn count_segments(ctx: Context, flow: &mut Flow) {
    let interval = cells::interval();
    if flow.minimum.interval == interval {
        flow.count_segments(ctx, SEGMENTS_BETWEEN_COUNTS);
    } else {
        flow.minimum.interval = interval;
        flow.count_segments(ctx, 1);
    }
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
