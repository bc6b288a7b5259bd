//! Rare events for user space: opened, failed, closed.

use core::mem::offset_of;

use probe_common::cells::Counter;
use probe_common::event::{Event, EventKind};
use probe_common::stats::{EVENT_COUNT_CELL, EVENT_SECOND_CELL, Stat};

use crate::context::Context;
use crate::flow::Flow;
use crate::maps::EVENTS;
use crate::{cells, config, connect, watch};

/// Sends an event, unless events are off or there were too many in this second.
#[inline(always)]
pub(crate) fn send(ctx: Context, flow: &Flow, kind: EventKind, outcome: Counter) {
    let Some(limit) = config::events_per_second() else {
        return;
    };
    let now_ns = connect::now();
    if !within_limit(now_ns, limit) {
        cells::stat(Stat::EventsSuppressed);
        return;
    }
    let since_ns = match kind {
        EventKind::Opened | EventKind::Failed => flow.started_ns,
        EventKind::Closed | EventKind::AdoptedClosed => flow.established_ns,
    };
    let Some(remote) = ctx.remote_words() else {
        return;
    };
    let Some(mut entry) = EVENTS.reserve(0) else {
        cells::stat(Stat::EventsLost);
        return;
    };
    let event = entry.as_mut_ptr();
    // Field by field and volatile: LLVM would make a call of `memset` or `memcpy` out of the whole, whose pointer
    // arithmetic the verifier refuses without CAP_PERFMON.
    macro_rules! set {
        ($($field:ident = $value:expr;)+) => {$(
            // SAFETY: the entry is a whole `Event`, and this its only writer.
            unsafe { (&raw mut (*event).$field).write_volatile($value) };
        )+};
    }
    set! {
        time_ns = now_ns;
        waited_us = (now_ns - since_ns) / 1000;
        netns = watch::netns_of(ctx);
        pid = flow.pid;
        syn_retransmits = flow.syn_retransmits;
        remote_port = ctx.remote_port();
        local_port = ctx.local_port();
        kind = kind as u8;
        role = flow.role;
        side = flow.side;
        outcome = outcome as u8;
    }
    // SAFETY: both fields are 16 bytes at a multiple of eight (checked below), inside the entry.
    unsafe {
        set_bytes((&raw mut (*event).remote).cast(), remote);
        set_bytes((&raw mut (*event).comm).cast(), flow.comm);
    }
    entry.submit(0);
}

const _: () = assert!(
    offset_of!(Event, remote).is_multiple_of(8) && offset_of!(Event, comm).is_multiple_of(8)
);

/// Writes two words.
///
/// # Safety
/// `to` must be valid for that.
#[inline(always)]
unsafe fn set_bytes(to: *mut u64, words: [u64; 2]) {
    // SAFETY: the caller's promise.
    unsafe {
        to.write_volatile(words[0]);
        to.add(1).write_volatile(words[1]);
    }
}

/// Counts the events of the running second. CPUs may race at its turn; a few events too many do no harm.
#[inline(always)]
fn within_limit(now_ns: u64, limit: u32) -> bool {
    let second = now_ns / 1_000_000_000;
    if cells::stat_cell(EVENT_SECOND_CELL) != second {
        cells::set_stat(EVENT_SECOND_CELL, second);
        cells::set_stat(EVENT_COUNT_CELL, 0);
    }
    if cells::stat_cell(EVENT_COUNT_CELL) >= u64::from(limit) {
        return false;
    }
    cells::add_to_stat(EVENT_COUNT_CELL, 1);
    true
}
