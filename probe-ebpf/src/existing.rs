//! Connections that were there before the observer: adopted when it comes, given back when it goes.

use core::ffi::c_void;

use aya_ebpf::bindings::{BPF_TCP_CLOSE_WAIT, BPF_TCP_ESTABLISHED};
use aya_ebpf::helpers::generated::{bpf_getsockopt, bpf_setsockopt};
use probe_common::cells::Counter;
use probe_common::endpoint::{EndpointKey, Side, fixed_slot};
use probe_common::stats::{
    ADOPT, ITERATION_CELL, ITERATION_NETNS_CELL, RELEASE, SOCK_OPS_PROGRAMS_CELL, Stat,
};

use crate::connect::{CALLBACKS, now};
use crate::flow::{self, FRESH, Flow, SOMETHING};
use crate::kernel_memory::read;
use crate::{cells, config, watch};

const SOL_TCP: i32 = 6;
/// A socket's callback flags as an option of `bpf_setsockopt` and `bpf_getsockopt` (6.12).
const TCP_BPF_SOCK_OPS_CB_FLAGS: i32 = 1008;
/// `BPF_PROG_TYPE_SOCK_OPS`.
const SOCK_OPS: u32 = 13;

/// Context of an iterator: `struct bpf_iter__tcp` and `struct bpf_iter__bpf_prog`, as far as both have it.
#[repr(C)]
struct IteratorContext {
    meta: *const c_void,
    /// What is visited; null after the last one.
    item: *mut c_void,
}

/// Visits every TCP socket of the network namespace of whoever opened the iterator, and holds its lock meanwhile.
#[unsafe(no_mangle)]
#[unsafe(link_section = "iter/tcp")]
extern "C" fn joinprobe_flows(ctx: *const IteratorContext) -> i32 {
    // SAFETY: the kernel hands a valid context to the program.
    let socket = unsafe { (&raw const (*ctx).item).read_volatile() };
    if socket.is_null() {
        return 0;
    }
    let mode = cells::stat_cell(ITERATION_CELL);
    if mode == ADOPT {
        let _ = adopt(socket);
    } else if mode == RELEASE {
        release(socket);
    }
    0
}

/// Visits every loaded program, and counts those that may live by the flags of sockets.
#[unsafe(no_mangle)]
#[unsafe(link_section = "iter/bpf_prog")]
extern "C" fn joinprobe_programs(ctx: *const IteratorContext) -> i32 {
    // SAFETY: as above.
    let program = unsafe { (&raw const (*ctx).item).read_volatile() };
    if program.is_null() {
        return 0;
    }
    if read::<u32>(program as u64, config::program_type_offset()) == Some(SOCK_OPS) {
        cells::add_to_stat(SOCK_OPS_PROGRAMS_CELL, 1);
    }
    0
}

/// Observes an established connection on a watched port from now on, unless it is observed already.
#[inline(always)]
fn adopt(socket: *mut c_void) -> Option<()> {
    let at = socket as u64;
    let offsets = config::socket_offsets();
    let state = u32::from(read::<u8>(at, offsets.state)?);
    if state != BPF_TCP_ESTABLISHED && state != BPF_TCP_CLOSE_WAIT {
        return None;
    }
    let remote_port = u16::from_be(read::<u16>(at, offsets.remote_port)?);
    let local_port = read::<u16>(at, offsets.local_port)?;
    let remote = remote_address(at, &offsets)?;
    let (role, side) = match watch::role_of(remote, remote_port) {
        Some(role) => (role, Side::Client),
        None => (watch::local_role(local_port)?, Side::Server),
    };
    if flow::of_socket(socket).is_some_and(|flow| flow.stage != FRESH) {
        return None;
    }
    let before = callback_flags(socket)?;
    let flow = flow::start_of_socket(socket)?;
    if !set_callback_flags(socket, before | CALLBACKS) {
        flow::forget_socket(socket);
        cells::stat(Stat::AdoptionsRefused);
        return None;
    }
    let netns = cells::stat_cell(ITERATION_NETNS_CELL);
    begin(
        flow,
        role,
        side,
        slot(netns, role, side, remote, remote_port),
    );
    flow.added_flags = CALLBACKS & !before;
    flow.total_retrans = read(at, offsets.total_retrans)?;
    if flow.total_retrans != 0 {
        flow.resent = SOMETHING;
    }
    flow.segments_out = read(at, offsets.data_segs_out)?;
    Some(())
}

#[inline(always)]
fn begin(flow: &mut Flow, role: u8, side: Side, slot: u32) {
    flow.started_ns = now();
    flow.established_ns = flow.started_ns;
    flow.slot = slot;
    flow.role = role;
    flow.side = side as u8;
    flow.adopted = 1;
    flow.establish();
    cells::stat(Stat::FlowsAdopted);
    cells::count(slot, Counter::Adopted, 1);
}

#[inline(always)]
fn slot(netns: u64, role: u8, side: Side, address: [u8; 16], port: u16) -> u32 {
    match side {
        Side::Server => fixed_slot(role, side),
        Side::Client => watch::slot_of(&EndpointKey {
            netns,
            address,
            port,
            role,
            reserved: 0,
            reserved_word: 0,
            process_start: 0,
            process_rest: 0,
        }),
    }
}

/// The remote address in network byte order, IPv4 as `::ffff:a.b.c.d`.
#[inline(always)]
fn remote_address(socket: u64, offsets: &config::SocketOffsets) -> Option<[u8; 16]> {
    const AF_INET: u16 = 2;
    const AF_INET6: u16 = 10;
    let words: [u32; 4] = match read::<u16>(socket, offsets.family)? {
        AF_INET => [0, 0, u32::to_be(0xffff), read(socket, offsets.remote_ip4)?],
        AF_INET6 => read(socket, offsets.remote_ip6)?,
        _ => return None,
    };
    // SAFETY: both are 16 bytes without padding, and any bit pattern is a valid byte.
    Some(unsafe { core::mem::transmute::<[u32; 4], [u8; 16]>(words) })
}

/// Takes back the flags that this observer set, and forgets the socket.
#[inline(always)]
fn release(socket: *mut c_void) {
    let Some(flow) = flow::of_socket(socket) else {
        return;
    };
    let added = flow.added_flags;
    if added != 0
        && let Some(flags) = callback_flags(socket)
    {
        set_callback_flags(socket, flags & !added);
    }
    flow::forget_socket(socket);
}

#[inline(always)]
fn callback_flags(socket: *mut c_void) -> Option<u32> {
    let mut flags = 0_u32;
    // SAFETY: the helper takes a socket whose lock is held, and writes four bytes to a live word.
    let status = unsafe {
        bpf_getsockopt(
            socket,
            SOL_TCP,
            TCP_BPF_SOCK_OPS_CB_FLAGS,
            (&raw mut flags).cast(),
            4,
        )
    };
    if status != 0 {
        cells::stat(Stat::AdoptionsRefused);
        return None;
    }
    Some(flags)
}

#[inline(always)]
fn set_callback_flags(socket: *mut c_void, mut flags: u32) -> bool {
    // SAFETY: the helper takes a socket whose lock is held, and reads four bytes of a live word.
    let status = unsafe {
        bpf_setsockopt(
            socket,
            SOL_TCP,
            TCP_BPF_SOCK_OPS_CB_FLAGS,
            (&raw mut flags).cast(),
            4,
        )
    };
    status == 0
}
