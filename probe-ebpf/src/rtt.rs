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
    let state = ctx.state();
    // The acknowledgement of a FIN is sampled too.
    if state != BPF_TCP_ESTABLISHED && state != BPF_TCP_CLOSE_WAIT {
        cold_path();
        return;
    }
    let new = ctx.arg1();
    // Nearly all samples are of this kind, and theirs is the way that has to be short.
    let (sample_us, may_be) = if flow.samples == PLAIN && new != 0 {
        let may_be = flow.may_sample_retransmission(ctx);
        (raw(ctx, new), may_be)
    } else {
        cold_path();
        match otherwise(ctx, flow, new, interval) {
            Some(sample) => sample,
            None => return,
        }
    };
    if sample::is_retransmission(sample_us, may_be) {
        cold_path();
        note_raw(new);
        sample::retransmission(flow.slot);
        return;
    }
    if u64::from(flow.minimum.interval) == interval {
        flow.count_many_segments(ctx);
    } else {
        // Where samples come from does not change: a look per interval is enough.
        cold_path();
        note_raw(new);
        flow.count_segments(ctx);
    }
    sample::segment(flow.slot, sample_us, &mut flow.minimum, interval);
}

/// Notes that samples come with their callback, if they do.
#[inline(always)]
fn note_raw(new: u64) {
    if new != 0 && !config::raw_ignored() {
        cells::note(Stat::RawSeen);
    }
}

/// Counts what else there is: samples of joinprobe's own connections, samples that are completed later, and whatever
/// comes before and after the connection is established. A sample that is left is to be counted as any other; with it comes
/// whether it may be one of a retransmission.
#[inline(always)]
fn otherwise(ctx: Context, flow: &mut Flow, new: u64, interval: u64) -> Option<(u64, bool)> {
    if flow.stage != ESTABLISHED {
        return None;
    }
    let paced = flow.own_cookie != 0 && is_paced(flow.own_cookie);
    let may_be = flow.may_sample_retransmission(ctx);
    let (sample_us, may_be) = if new != 0 && !config::raw_ignored() {
        (raw(ctx, new), may_be)
    } else if ctx.may_read_kernel() && reconstruct::is_on() {
        if !paced {
            count_segments(ctx, flow, interval);
        }
        reconstruct::begin(ctx, flow.slot, paced, may_be);
        return None;
    } else {
        cells::note(Stat::SmoothedSeen);
        // What an estimate was made of does not show.
        (smoothed(ctx)?, false)
    };
    if !paced {
        return Some((sample_us, may_be));
    }
    note_raw(new);
    if sample::is_retransmission(sample_us, may_be) {
        sample::retransmission(flow.slot);
    } else {
        sample::path(flow.slot, sample_us);
    }
    None
}

/// The sample as it comes with the callback, in microseconds.
///
/// Since 6.10 argument 0 is the sample and argument 1 the new smoothed RTT, while the context still has the old one
/// (`tcp_rtt_estimator` in `net/ipv4/tcp_input.c`). Argument 0 shares its storage with `reply`, so the sample is computed
/// from the other two.
#[inline(always)]
fn raw(ctx: Context, new: u64) -> u64 {
    let sample_us = difference(ctx.srtt_us(), new);
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

/// Counts what was sent, without the sample at hand: each interval's first time, and now and then.
#[inline(always)]
fn count_segments(ctx: Context, flow: &mut Flow, interval: u64) {
    if u64::from(flow.minimum.interval) == interval {
        flow.count_many_segments(ctx);
    } else {
        flow.minimum.interval = interval as u32;
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
