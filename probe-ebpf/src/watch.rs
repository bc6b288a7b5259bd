//! Decides whether a connection is watched, as what, and which slot counts it.

use aya_ebpf::bindings::BPF_NOEXIST;
use probe_common::cells::Counter;
use probe_common::endpoint::{EndpointKey, Side, fixed_slot};
use probe_common::ports::{AddressKey, BY_ADDRESS, shift_of, word_of};
use probe_common::stats::Stat;

use crate::cells;
use crate::config;
use crate::context::Context;
use crate::maps::{ADDRESSES, FREE_SLOTS, OWN, PORTS, SLOTS};
use crate::process::{self, Process};

/// A connection that is watched.
pub(crate) struct Watched {
    /// A `Role`.
    pub(crate) role: u8,
    /// The slot that counts it.
    pub(crate) slot: u32,
    /// Its cookie if it is one of joinprobe's own probes, else 0.
    pub(crate) own_cookie: u64,
    /// Who opened it, where that is known of others than joinprobe itself.
    pub(crate) process: Process,
}

/// Whether a connection that this host opens is watched.
#[inline(always)]
pub(crate) fn client(ctx: Context) -> Option<Watched> {
    let role = if config::own_only() {
        0
    } else {
        let role = role_of(ctx.remote_address()?, ctx.remote_port())?;
        if !in_watched_netns(ctx) {
            return None;
        }
        role
    };
    let cookie = ctx.cookie();
    // SAFETY: entries are removed only by user space, after the probe's socket is closed.
    if let Some(own) = unsafe { OWN.get(&cookie) } {
        return Some(Watched {
            role: own.role as u8,
            slot: own.slot,
            own_cookie: cookie,
            process: process::unknown(),
        });
    }
    if config::own_only() {
        return None;
    }
    let process = if ctx.may_read_kernel() {
        process::caller().unwrap_or_else(process::unknown)
    } else {
        process::unknown()
    };
    let apart = if config::by_process() {
        process
    } else {
        process::unknown()
    };
    Some(Watched {
        role,
        slot: slot_of(&EndpointKey {
            netns: netns_of(ctx),
            address: ctx.remote_address()?,
            port: ctx.remote_port(),
            role,
            reserved: 0,
            reserved_word: 0,
            process_start: apart.start,
            process_rest: apart.rest,
        }),
        own_cookie: 0,
        process,
    })
}

/// Whether a connection that this host accepted is watched. The remote address is not kept.
#[inline(always)]
pub(crate) fn server(ctx: Context) -> Option<Watched> {
    if config::own_only() {
        return None;
    }
    let role = local_role(ctx.local_port())?;
    if !in_watched_netns(ctx) {
        return None;
    }
    Some(Watched {
        role,
        slot: fixed_slot(role, Side::Server),
        own_cookie: 0,
        process: process::unknown(),
    })
}

#[inline(always)]
fn port_byte(port: u16) -> u8 {
    match PORTS.get(word_of(port)) {
        Some(word) => (word >> shift_of(port)) as u8,
        None => 0,
    }
}

/// What this host serves on one of its ports, if that is watched.
#[inline(always)]
pub(crate) fn local_role(port: u16) -> Option<u8> {
    let role = port_byte(port) & !BY_ADDRESS;
    (role != 0).then_some(role)
}

/// What a remote address serves, if it is watched.
#[inline(always)]
pub(crate) fn role_of(address: [u8; 16], port: u16) -> Option<u8> {
    let byte = port_byte(port);
    if byte & BY_ADDRESS != 0 {
        let key = AddressKey {
            address,
            port,
            reserved: 0,
        };
        // SAFETY: entries are written before the program is attached and never removed.
        if let Some(role) = unsafe { ADDRESSES.get(&key) } {
            return Some(*role as u8);
        }
    }
    let role = byte & !BY_ADDRESS;
    (role != 0).then_some(role)
}

#[inline(always)]
fn in_watched_netns(ctx: Context) -> bool {
    match config::only_netns() {
        Some(cookie) if ctx.may_name_netns() => ctx.netns_cookie() == cookie,
        _ => true,
    }
}

/// The network namespace as keys and events name it: 0 while only one is watched or none can be told from another.
#[inline(always)]
pub(crate) fn netns_of(ctx: Context) -> u64 {
    if ctx.may_name_netns() && config::netns_cookie_known() && config::only_netns().is_none() {
        ctx.netns_cookie()
    } else {
        0
    }
}

/// The slot that counts connections to a remote endpoint: its own, or where none is left the one that its role shares.
#[inline(always)]
pub(crate) fn slot_of(key: &EndpointKey) -> u32 {
    if let Some(slot) = known_slot(key) {
        return slot;
    }
    if let Ok(Some(slot)) = FREE_SLOTS.pop() {
        if SLOTS.insert(key, &slot, u64::from(BPF_NOEXIST)).is_ok() {
            return slot;
        }
        // Another CPU was first (or the table is full): the slot goes back.
        let _ = FREE_SLOTS.push(&slot, 0);
        if let Some(slot) = known_slot(key) {
            return slot;
        }
    }
    let slot = fixed_slot(key.role, Side::Client);
    cells::stat(Stat::SlotsExhausted);
    cells::count(slot, Counter::Overflowed, 1);
    slot
}

#[inline(always)]
fn known_slot(key: &EndpointKey) -> Option<u32> {
    // SAFETY: user space removes entries only together with the observer.
    unsafe { SLOTS.get(key) }.copied()
}
