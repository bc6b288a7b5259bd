//! Why a connect failed or a connection ended.

use aya_ebpf::bindings::{BPF_TCP_CLOSE_WAIT, BPF_TCP_ESTABLISHED};
use aya_ebpf::helpers::bpf_probe_read_kernel;
use aya_ebpf::helpers::generated::bpf_skc_to_tcp_sock;
use probe_common::cells::Counter;

use crate::config;
use crate::context::Context;

const EPIPE: i32 = 32;
const ENETUNREACH: i32 = 101;
const ECONNRESET: i32 = 104;
const ETIMEDOUT: i32 = 110;
const ECONNREFUSED: i32 = 111;
const EHOSTUNREACH: i32 = 113;

/// The outcome of a connect whose socket goes from `SYN_SENT` to `CLOSE`.
#[inline(always)]
pub(crate) fn of_connect(ctx: Context) -> Counter {
    match socket_error(ctx) {
        Some(0) => Counter::Abandoned,
        Some(ECONNREFUSED) => Counter::Refused,
        Some(ETIMEDOUT) => Counter::TimedOut,
        Some(EHOSTUNREACH | ENETUNREACH) => Counter::Unreachable,
        _ => Counter::FailedUnknown,
    }
}

/// How an established connection ended: `Reset` if the peer's RST cut it while it could still carry data, else `Closed`.
///
/// `tcp_reset` notes the error before it closes the socket. Where this host sends the RST, for closing with unread data or
/// with SO_LINGER at 0, the socket is closed first and there is no error yet: its own program wanted it so. Where the
/// error cannot be read the two look alike, and neither counts.
#[inline(always)]
pub(crate) fn of_connection(ctx: Context) -> Counter {
    let state = ctx.state();
    if state != BPF_TCP_ESTABLISHED && state != BPF_TCP_CLOSE_WAIT {
        return Counter::Closed;
    }
    match socket_error(ctx) {
        Some(ECONNRESET | EPIPE) => Counter::Reset,
        _ => Counter::Closed,
    }
}

/// The socket's pending error, where the loader found out how to read it.
#[inline(always)]
fn socket_error(ctx: Context) -> Option<i32> {
    if !ctx.may_read_kernel() {
        return None;
    }
    let offset = config::sk_err_offset()?;
    let socket = ctx.socket()?;
    // SAFETY: the helper takes a socket and answers with the TCP socket, which starts with its `struct sock`, or null.
    let tcp = unsafe { bpf_skc_to_tcp_sock(socket.cast()) };
    if tcp.is_null() {
        return None;
    }
    // SAFETY: the offset is that of an `int` in this kernel's `struct sock`; a bad address would be an error.
    unsafe { bpf_probe_read_kernel(tcp.byte_add(offset).cast::<i32>()) }.ok()
}
