//! A TCP traceroute to a target's own port: at which hop the time goes, or the SYN is lost.
//!
//! SYNs leave through ordinary sockets with a small TTL (IPv6: hop limit) and `IP_RECVERR` (ip(7)): a router that drops
//! one says so by ICMP, and the kernel puts that, with the router's address, on the socket's error queue. No raw socket
//! and no capability is needed. A SYN that arrives is an ordinary connection, closed at once.
//!
//! Routers choose among equal paths by addresses and ports. All SYNs of a flow have the same, so each flow is one path,
//! and several flows show several paths.

mod flow;
mod path;
mod syn;

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

pub use path::{End, Hop, Path, Step, Trace};

/// Flows to one target, each with a source port of its own. A Linux router sends a host 6 ICMP errors at once and then
/// one a second (`icmp_ratelimit`), so that more flows would find out less.
const FLOWS: usize = 3;

/// How long an answer is waited for beyond three times the RTT that is known. Routers may answer late.
const PATIENCE: Duration = Duration::from_millis(300);

/// The kernel repeats a SYN after 1 s: giving up before that keeps to one SYN per probe.
const LONGEST_PATIENCE: Duration = Duration::from_millis(950);

/// Traces the way to `target`, until `deadline` at the latest. `expected` is the RTT as far as it is known.
pub async fn trace(target: SocketAddr, expected: Option<Duration>, deadline: Instant) -> Trace {
    let patience = expected.map_or(LONGEST_PATIENCE, |rtt| {
        (3 * rtt + PATIENCE).min(LONGEST_PATIENCE)
    });
    let flows = join_all((0..FLOWS).map(|_| flow::follow(target, patience, deadline))).await;
    Trace::of(flows)
}
