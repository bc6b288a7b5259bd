//! The tcp stage.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use tokio::net::TcpSocket;
use tokio::time::{Instant, timeout_at};

use super::context::{Marker, ProbeContext};
use super::report::{ProbeFailure, Stage};
use super::text;
use super::wire::Wire;
use crate::target::Target;

/// An established connection, marked as our own.
pub(super) struct Connected<'a> {
    // Fields are dropped in this order: the kernel side forgets a socket that is closed.
    pub(super) wire: Arc<Wire>,
    pub(super) marked: Marked<'a>,
    pub(super) took: Duration,
}

/// A socket the kernel side knows; forgotten when dropped.
pub(super) struct Marked<'a> {
    pub(super) marker: &'a dyn Marker,
    pub(super) cookie: u64,
}

impl Drop for Marked<'_> {
    fn drop(&mut self) {
        self.marker.forget(self.cookie);
    }
}

/// Connects once. The kernel repeats a lost SYN by itself.
pub(super) async fn connect<'a>(
    target: &Target,
    address: SocketAddr,
    context: &ProbeContext<'a>,
) -> Result<Connected<'a>, ProbeFailure> {
    let local = |error: io::Error| ProbeFailure {
        stage: Stage::Tcp,
        result: "local_error",
        text: format!(
            "this host could not make a socket for {target}: {error}; {}",
            text::local_remedy(&error)
        ),
    };
    let (socket, cookie) = prepare(address).map_err(local)?;
    // Before connect(): the SYN already belongs to the target.
    context.marker.mark(cookie);
    let marked = Marked {
        marker: context.marker,
        cookie,
    };
    let started = Instant::now();
    match timeout_at(context.deadline, socket.connect(address)).await {
        Ok(Ok(stream)) => Ok(Connected {
            took: started.elapsed(),
            wire: Wire::new(stream),
            marked,
        }),
        Ok(Err(error)) => Err(refusal(target, &error, started.elapsed())),
        Err(_) => Err(silence(target, started.elapsed())),
    }
}

fn prepare(address: SocketAddr) -> io::Result<(TcpSocket, u64)> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Every chunk is a segment of its own.
    socket.set_nodelay(true)?;
    let cookie = rustix::net::sockopt::socket_cookie(&socket)?;
    Ok((socket, cookie))
}

fn silence(target: &Target, waited: Duration) -> ProbeFailure {
    ProbeFailure {
        stage: Stage::Tcp,
        result: "timed_out",
        text: format!(
            "{target} did not answer a SYN within {}: the host is down, or a firewall or security group drops TCP port \
             {} on the way; open it for this node, or correct the address",
            text::span(waited),
            target.spec.port
        ),
    }
}

fn refusal(target: &Target, error: &io::Error, waited: Duration) -> ProbeFailure {
    let service = text::service(target.spec.role);
    let failure = |result, text| ProbeFailure {
        stage: Stage::Tcp,
        result,
        text,
    };
    match Errno::from_io_error(error) {
        Some(Errno::CONNREFUSED) => failure(
            "refused",
            format!(
                "{target} refuses connections: no {service} listens there, or a firewall rejects this node; start it, \
                 make it listen on that address, or correct the address"
            ),
        ),
        Some(Errno::TIMEDOUT) => silence(target, waited),
        Some(Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::HOSTDOWN | Errno::NETDOWN) => failure(
            "unreachable",
            format!(
                "{target} cannot be reached from this host ({}): there is no route, no answer to ARP or neighbour \
                 discovery, or a router rejects it; check routes, interfaces and firewalls",
                text::plain(error)
            ),
        ),
        Some(Errno::PERM | Errno::ACCESS) => failure(
            "unreachable",
            format!(
                "this host's own firewall or security policy forbids connecting to {target} ({}); allow it",
                text::plain(error)
            ),
        ),
        Some(Errno::CONNRESET) => failure(
            "reset",
            format!(
                "{target} reset the connection while it was being set up; check firewalls and load balancers on the way"
            ),
        ),
        Some(Errno::INVAL) if matches!(target.address, Some(SocketAddr::V6(_))) => failure(
            "unreachable",
            format!(
                "{target} cannot be dialled as it stands: a link-local address needs its interface, for example \
                 [fe80::1%eth0]:{}",
                target.spec.port
            ),
        ),
        Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL) => failure(
            "unreachable",
            format!(
                "this host has no address to reach {target} from ({}); check that IPv4 or IPv6, whichever it needs, is \
                 set up and that local ports are free",
                text::plain(error)
            ),
        ),
        _ => failure(
            "unreachable",
            format!(
                "connecting to {target} failed: {}; {}",
                text::plain(error),
                text::local_remedy(error)
            ),
        ),
    }
}
