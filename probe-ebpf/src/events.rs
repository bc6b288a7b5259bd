//! Rare events for user space: opened, failed, closed.

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
        EventKind::Closed => flow.established_ns,
    };
    let Some(remote) = ctx.remote_address() else {
        return;
    };
    let event = Event {
        time_ns: now_ns,
        waited_us: (now_ns - since_ns) / 1000,
        netns: watch::netns_of(ctx),
        remote,
        comm: [0; 16],
        pid: 0,
        syn_retransmits: flow.syn_retransmits,
        remote_port: ctx.remote_port(),
        local_port: ctx.local_port(),
        kind: kind as u8,
        role: flow.role,
        side: flow.side,
        outcome: outcome as u8,
    };
    let Some(mut entry) = EVENTS.reserve(0) else {
        cells::stat(Stat::EventsLost);
        return;
    };
    entry.write(event);
    entry.submit(0);
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
