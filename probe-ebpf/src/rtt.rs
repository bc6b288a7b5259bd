//! RTT samples.

use core::hint::cold_path;

use aya_ebpf::bindings::{BPF_TCP_CLOSE_WAIT, BPF_TCP_ESTABLISHED};
use probe_common::own::PACED;
use probe_common::stats::Stat;

use crate::context::Context;
use crate::flow::{self, ESTABLISHED, Flow, PLAIN};
use crate::maps::OWN;
use crate::{cells, config, reconstruct, sample};

/// The kernel took an RTT sample: once per round trip in which data is acknowledged.
#[inline(always)]
pub(crate) fn sampled(ctx: Context) {
    // Read while the socket's storage is sought: both are rarely in the nearest cache.
    let interval = cells::interval();
    let Some(flow) = flow::find(ctx) else { return };
    // Nearly all samples are plain, and theirs is the way that has to be short. Where other observers interfere, only the
    // state tells that the socket is still, or already, the one that the flow is of: no end of it may have been seen.
    if flow.samples != PLAIN || ctx.state() != BPF_TCP_ESTABLISHED {
        cold_path();
        otherwise(ctx, flow, interval);
        return;
    }
    let sample_us = raw(ctx);
    if u64::from(flow.minimum.interval) != interval {
        cold_path();
        flow.count_segments(ctx);
        sample::first_segment(flow.slot, sample_us, &mut flow.minimum, interval);
        return;
    }
    if flow.are_segments_due(ctx) {
        cold_path();
        flow.count_segments(ctx);
    }
    sample::further_segment(flow.slot, sample_us, &mut flow.minimum);
}

/// Counts what else there is: the first samples of a connection and of joinprobe's own, those that may be of
/// retransmissions, and those that are completed later. Whatever comes before and after the connection is established is no
/// sample.
#[inline(always)]
fn otherwise(ctx: Context, flow: &mut Flow, interval: u64) {
    let state = ctx.state();
    // The acknowledgement of a FIN is sampled too.
    if flow.stage != ESTABLISHED || (state != BPF_TCP_ESTABLISHED && state != BPF_TCP_CLOSE_WAIT) {
        return;
    }
    let paced = flow.own_cookie != 0 && is_paced(flow.own_cookie);
    if !paced {
        count_segments(ctx, flow, interval);
    }
    let may_be = flow.may_sample_retransmission(ctx);
    let (sample_us, may_be) = if ctx.arg1() != 0 && !config::raw_ignored() {
        cells::note(Stat::RawSeen);
        flow.expect_plain_samples();
        (raw(ctx), may_be)
    } else if ctx.may_read_kernel() && reconstruct::is_on() {
        reconstruct::begin(ctx, flow.slot, paced, may_be);
        // The minimum is kept there; here this says that the interval's segments are counted.
        flow.minimum.interval = interval as u32;
        return;
    } else {
        cells::note(Stat::SmoothedSeen);
        let Some(sample_us) = smoothed(ctx) else {
            return;
        };
        // What an estimate was made of does not show.
        (sample_us, false)
    };
    if sample::is_retransmission(sample_us, may_be) {
        sample::retransmission(flow.slot);
    } else if paced {
        sample::path(flow.slot, sample_us);
    } else {
        sample::segment(flow.slot, sample_us, &mut flow.minimum, interval);
    }
}

/// The sample as it comes with the callback, in microseconds.
///
/// Since 6.10 argument 0 is the sample and argument 1 the new smoothed RTT, while the context still has the old one
/// (`tcp_rtt_estimator` in `net/ipv4/tcp_input.c`). Argument 0 shares its storage with `reply`, so the sample is computed
/// from the other two.
#[inline(always)]
fn raw(ctx: Context) -> u64 {
    let sample_us = difference(ctx.srtt_us(), ctx.arg1());
    if ctx.arg0() != sample_us {
        cold_path();
        cells::stat(Stat::RawDisagreements);
    }
    sample_us
}

/// The sample that took the smoothed RTT from `old` to `new`: the estimator adds an eighth of `sample - old`. Both are
/// microseconds x 8, and 0 before the first sample.
#[inline(always)]
pub(crate) fn difference(old: u64, new: u64) -> u64 {
    if old == 0 {
        new >> 3
    } else {
        new.wrapping_sub(old).wrapping_add(old >> 3)
    }
}

/// The smoothed RTT before the sample, in the sample's place.
#[inline(always)]
fn smoothed(ctx: Context) -> Option<u64> {
    let old = ctx.srtt_us();
    (old != 0).then_some(old >> 3)
}

/// Counts what was sent: each interval's first time, and now and then.
#[inline(always)]
fn count_segments(ctx: Context, flow: &mut Flow, interval: u64) {
    if u64::from(flow.minimum.interval) != interval || flow.are_segments_due(ctx) {
        flow.count_segments(ctx);
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
