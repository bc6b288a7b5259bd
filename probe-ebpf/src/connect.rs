//! Openings and endings of connections.

use aya_ebpf::bindings::{
    BPF_SOCK_OPS_RETRANS_CB_FLAG, BPF_SOCK_OPS_RTT_CB_FLAG, BPF_SOCK_OPS_STATE_CB_FLAG,
    BPF_TCP_CLOSE, BPF_TCP_ESTABLISHED,
};
use aya_ebpf::helpers::generated::bpf_ktime_get_ns;
use probe_common::cells::{Counter, Measure};
use probe_common::endpoint::Side;
use probe_common::event::EventKind;
use probe_common::stats::Stat;

use crate::context::Context;
use crate::flow::{self, CONNECTING, ESTABLISHED, Flow};
use crate::{cells, events, failure, log, reconstruct, watch};

/// The callbacks that an observed socket needs.
pub(crate) const CALLBACKS: u32 =
    BPF_SOCK_OPS_RTT_CB_FLAG | BPF_SOCK_OPS_RETRANS_CB_FLAG | BPF_SOCK_OPS_STATE_CB_FLAG;

/// `connect()` was called; the SYN is about to leave.
#[inline(always)]
pub(crate) fn connecting(ctx: Context) {
    let Some(watched) = watch::client(ctx) else {
        // One that had this socket's address may have gone without a word, if another observer took its callbacks away.
        flow::leave_table(ctx);
        if ctx.cb_flags() & CALLBACKS == CALLBACKS {
            // A socket that was connected to a watched port before and keeps its flags.
            flow::forget(ctx);
        }
        return;
    };
    let Some(flow) = flow::start(ctx) else { return };
    begin(flow, &watched, Side::Client);
    flow.stage = CONNECTING;
    flow.total_retrans = ctx.total_retrans();
    flow.segments_out = ctx.data_segs_out() as u32;
    flow.pid = watched.process.pid;
    flow.comm = [watched.process.start, watched.process.rest];
    flow.request_callbacks(ctx);
}

/// The SYN-ACK of our SYN came.
#[inline(always)]
pub(crate) fn connected(ctx: Context) {
    let Some(flow) = flow::find(ctx) else { return };
    if flow.stage != CONNECTING {
        return;
    }
    flow.count_retransmits(ctx);
    flow.no_timestamps = u8::from(ctx.lacks_timestamps());
    flow.establish();
    flow.established_ns = now();
    let connect_us = micros(flow.established_ns - flow.started_ns);
    cells::count(flow.slot, Counter::Established, 1);
    cells::record(flow.slot, Measure::Connect, u64::from(connect_us));
    // An answer to a SYN that was sent twice says nothing about either.
    if ctx.total_retrans() == 0 {
        handshake(ctx, flow);
    }
    // Another program may have replaced the flags since `connecting`.
    flow.request_callbacks(ctx);
    events::send(ctx, flow, EventKind::Opened, Counter::Established);
    if ctx.may_read_kernel() {
        log::opened(flow.slot, connect_us, flow.syn_retransmits);
    }
}

/// A connection to us is established; under TCP fast open, its handshake may still go on.
#[inline(always)]
pub(crate) fn accepted(ctx: Context) {
    let Some(watched) = watch::server(ctx) else {
        // As in `connecting`.
        flow::leave_table(ctx);
        return;
    };
    let Some(flow) = flow::start(ctx) else { return };
    begin(flow, &watched, Side::Server);
    // What was sent again by now were SYN-ACKs, counted from 0.
    flow.count_retransmits(ctx);
    flow.no_timestamps = u8::from(ctx.lacks_timestamps());
    flow.establish();
    flow.established_ns = flow.started_ns;
    cells::count(flow.slot, Counter::Established, 1);
    if ctx.srtt_us() == 0 {
        flow.handshake_pending = 1;
    } else {
        server_handshake(ctx, flow);
    }
    flow.request_callbacks(ctx);
    events::send(ctx, flow, EventKind::Opened, Counter::Established);
    if ctx.may_read_kernel() {
        log::opened(flow.slot, 0, flow.syn_retransmits);
    }
}

/// The socket is about to leave `ctx.state()`. The old state is read there and not from argument 0, which another
/// program may have overwritten.
#[inline(always)]
pub(crate) fn state_changed(ctx: Context) {
    let new = ctx.arg1() as u32;
    reconstruct::settle(ctx, new);
    if new != BPF_TCP_CLOSE && new != BPF_TCP_ESTABLISHED {
        return;
    }
    let Some(flow) = flow::find(ctx) else { return };
    if new == BPF_TCP_ESTABLISHED {
        if flow.handshake_pending != 0 {
            // SYN-ACKs under TCP fast open are sent again without a callback.
            flow.count_retransmits(ctx);
            flow.handshake_pending = 0;
            server_handshake(ctx, flow);
        }
        return;
    }
    if flow.stage == CONNECTING {
        flow.count_retransmits(ctx);
        let outcome = failure::of_connect(ctx);
        cells::count(flow.slot, outcome, 1);
        events::send(ctx, flow, EventKind::Failed, outcome);
        if ctx.may_read_kernel() {
            log::failed(flow.slot, outcome as u32, flow.syn_retransmits);
        }
    } else if flow.stage == ESTABLISHED {
        flow.count_retransmits(ctx);
        flow.count_segments(ctx);
        let outcome = failure::of_connection(ctx);
        cells::count(flow.slot, Counter::Closed, 1);
        if matches!(outcome, Counter::Reset) {
            cells::count(flow.slot, Counter::Reset, 1);
        }
        let kind = if flow.adopted == 0 {
            EventKind::Closed
        } else {
            EventKind::AdoptedClosed
        };
        events::send(ctx, flow, kind, outcome);
        if ctx.may_read_kernel() {
            log::closed(flow.slot, outcome as u32);
        }
    }
    flow.end();
    flow::leave_table(ctx);
}

#[inline(always)]
fn begin(flow: &mut Flow, watched: &watch::Watched, side: Side) {
    flow.started_ns = now();
    flow.own_cookie = watched.own_cookie;
    flow.slot = watched.slot;
    flow.role = watched.role;
    flow.side = side as u8;
    cells::stat(Stat::FlowsSeen);
    cells::count(flow.slot, Counter::Opened, 1);
}

/// Records the handshake's RTT: the first sample, so the smoothed value is that sample.
#[inline(always)]
fn handshake(ctx: Context, flow: &Flow) {
    let srtt_us = ctx.srtt_us();
    if srtt_us != 0 {
        cells::record(flow.slot, Measure::Handshake, srtt_us >> 3);
    }
}

/// The same for the server side, without what may not be a measured RTT: after a retransmitted SYN-ACK, and from SYN
/// cookies, the kernel takes the TCP timestamp, which counts whole milliseconds.
#[inline(always)]
fn server_handshake(ctx: Context, flow: &Flow) {
    if ctx.total_retrans() == 0 && !(ctx.srtt_us() >> 3).is_multiple_of(1000) {
        handshake(ctx, flow);
    }
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
#[inline(always)]
pub(crate) fn now() -> u64 {
    // SAFETY: the helper takes nothing.
    unsafe { bpf_ktime_get_ns() }
}

#[inline(always)]
pub(crate) fn micros(ns: u64) -> u32 {
    let us = ns / 1000;
    if us > u64::from(u32::MAX) {
        u32::MAX
    } else {
        us as u32
    }
}
