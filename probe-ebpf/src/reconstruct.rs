//! Samples that do not come with their callback, put together from the smoothed RTT before and after.
//!
//! Until 6.10 the RTT callback says only that there is a sample: the context still has the smoothed RTT without it, and
//! nothing calls the program again once it is in. But the next segment of an established connection passes the
//! tracepoint `tcp_probe` before any of it is processed (`tcp_rcv_established` in `net/ipv4/tcp_input.c`), and every
//! change of state passes the state callback: there the smoothed RTT is that of exactly one sample more.

use core::mem::MaybeUninit;

use aya_ebpf::bindings::{BPF_NOEXIST, BPF_TCP_CLOSE, BPF_TCP_ESTABLISHED};
use aya_ebpf::helpers::bpf_probe_read_kernel;
use aya_ebpf::macros::btf_tracepoint;
use aya_ebpf::programs::BtfTracePointContext;
use probe_common::cells::Counter;
use probe_common::stats::{Stat, TRACING_CELL};

use crate::context::Context;
use crate::maps::RECONSTRUCTIONS;
use crate::sample::Minimum;
use crate::{cells, config, rtt, sample};

const NOTHING: u8 = 0;
const SEGMENT: u8 = 1;
const PATH: u8 = 2;

/// What is known of a connection's next sample. Callbacks and the tracepoint hold the socket's lock, so nothing here is
/// written by two CPUs at once.
#[repr(C)]
pub(crate) struct Reconstruction {
    /// The smoothed RTT before the sample; microseconds x 8.
    old_srtt: u32,
    /// The slot that counts it.
    slot: u32,
    /// The smallest sample so far.
    minimum: Minimum,
    /// What the sample is, if one was begun: [`NOTHING`], [`SEGMENT`] or [`PATH`].
    begun: u8,
    /// Whether it may be a sample of something that was sent again.
    may_be_retransmission: u8,
    /// Always 0.
    reserved: u16,
}

/// Whether the tracepoint is attached.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    config::srtt_offset().is_some() && cells::stat_cell(TRACING_CELL) != 0
}

/// The kernel is about to take a sample.
#[inline(always)]
pub(crate) fn begin(ctx: Context, slot: u32, paced: bool, may_be_retransmission: bool) {
    // After the peer's FIN segments no longer pass the tracepoint, so several samples may come before the next look.
    if ctx.state() != BPF_TCP_ESTABLISHED {
        cells::count(slot, Counter::DroppedSamples, 1);
        return;
    }
    let cookie = ctx.cookie();
    let Some(known) = entry(cookie).or_else(|| make(cookie)) else {
        cells::count(slot, Counter::DroppedSamples, 1);
        return;
    };
    if known.begun != NOTHING {
        cells::count(slot, Counter::DroppedSamples, 1);
    }
    known.old_srtt = ctx.srtt_us() as u32;
    known.slot = slot;
    known.may_be_retransmission = u8::from(may_be_retransmission);
    known.begun = if paced { PATH } else { SEGMENT };
}

/// The socket changes its state to `new`; at the end of the connection it is forgotten.
#[inline(always)]
pub(crate) fn settle(ctx: Context, new: u32) {
    if !ctx.may_read_kernel() || !is_on() {
        return;
    }
    let cookie = ctx.cookie();
    if let Some(known) = entry(cookie) {
        finish(known, ctx.srtt_us());
        if new == BPF_TCP_CLOSE {
            // That it was gone already is no error.
            let _ = RECONSTRUCTIONS.remove(&cookie);
        }
    }
}

/// Runs for every TCP segment that an established connection of this host receives.
#[btf_tracepoint(function = "tcp_probe")]
#[allow(clippy::needless_pass_by_value, reason = "the macro calls it so")]
fn joinprobe_rtt(ctx: BtfTracePointContext) -> i32 {
    let socket: *const u8 = ctx.arg(0);
    let Some(srtt_offset) = config::srtt_offset() else {
        return 0;
    };
    // SAFETY: the offset is that of a 64-bit cookie in this kernel's `struct sock`; a bad address would be an error.
    let cookie =
        unsafe { bpf_probe_read_kernel(socket.byte_add(config::cookie_offset()).cast::<u64>()) };
    // Who looks at a socket gives it a cookie; most have none.
    let Ok(cookie @ 1..) = cookie else { return 0 };
    let Some(known) = entry(cookie) else { return 0 };
    if known.begun == NOTHING {
        return 0;
    }
    // SAFETY: the same of a 32-bit field in `struct tcp_sock`, which begins with its `struct sock`.
    let srtt = unsafe { bpf_probe_read_kernel(socket.byte_add(srtt_offset).cast::<u32>()) };
    match srtt {
        Ok(srtt) => finish(known, u64::from(srtt)),
        Err(_) => known.begun = NOTHING,
    }
    0
}

/// Counts the sample that was begun, if one was, now that the smoothed RTT has it.
#[inline(always)]
fn finish(known: &mut Reconstruction, srtt: u64) {
    let begun = known.begun;
    if begun == NOTHING {
        return;
    }
    known.begun = NOTHING;
    let sample_us = rtt::difference(u64::from(known.old_srtt), srtt);
    cells::note(Stat::ReconstructedSeen);
    if sample::is_retransmission(sample_us, known.may_be_retransmission != 0) {
        sample::retransmission(known.slot);
    } else if begun == PATH {
        sample::path(known.slot, sample_us);
    } else {
        sample::segment(known.slot, sample_us, &mut known.minimum, cells::interval());
    }
}

#[inline(always)]
fn entry(cookie: u64) -> Option<&'static mut Reconstruction> {
    let found = RECONSTRUCTIONS.get_ptr_mut(&cookie)?;
    // SAFETY: a live map value; whoever holds the socket's lock is its only user, and removes it only under that lock.
    unsafe { found.as_mut() }
}

#[inline(always)]
fn make(cookie: u64) -> Option<&'static mut Reconstruction> {
    // SAFETY: integers only, for which zero is a value.
    let empty: Reconstruction = unsafe { MaybeUninit::zeroed().assume_init() };
    RECONSTRUCTIONS
        .insert(&cookie, &empty, u64::from(BPF_NOEXIST))
        .ok()?;
    entry(cookie)
}
