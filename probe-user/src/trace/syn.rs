//! One SYN with a chosen TTL, and what came back.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use libc::{sock_extended_err, sockaddr_in6};
use nix::sys::socket::sockopt::{Ipv4RecvErr, Ipv6RecvErr};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt};
use rustix::io::Errno;
use rustix::net::sockopt;
use tokio::net::TcpSocket;
use tokio::time::{Instant, timeout_at};

/// The TTL of ordinary packets (`ip_default_ttl`).
pub(super) const ORDINARY_TTL: u8 = 64;

/// Who answered, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// A router: the TTL ran out there.
    Expired(IpAddr),
    /// A router or host: it will not pass the SYN on.
    Rejected(IpAddr),
    /// The target, with a SYN-ACK.
    Established,
    /// The target, or a firewall in its name, with a RST.
    Refused,
    /// Nobody.
    Silence,
}

/// An answer, when it came, and the address the SYN left from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply {
    pub(super) answer: Answer,
    pub(super) after: Duration,
    pub(super) from: SocketAddr,
}

/// Sends one SYN from `from`, or from any port, and waits for an answer. The socket is closed on return: an established
/// connection by FIN, any other without a packet.
///
/// # Errors
/// This host cannot send it: no route, no free port, or forbidden.
pub(super) async fn send(
    target: SocketAddr,
    from: Option<SocketAddr>,
    ttl: u8,
    patience: Duration,
) -> io::Result<Reply> {
    let (connecting, from) = prepare(target, from, ttl)?;
    // Connecting consumes the socket, and its error queue is read after that.
    let socket = rustix::io::fcntl_dupfd_cloexec(&connecting, 0)?;
    let started = Instant::now();
    let outcome = timeout_at(started + patience, connecting.connect(target)).await;
    let after = started.elapsed();
    let answer = match (queued(&socket)?, &outcome) {
        // First: a firewall's ICMP "port unreachable" and a RST are both ECONNREFUSED.
        (Some(answer), _) => answer,
        (None, Ok(Ok(_))) => Answer::Established,
        (None, Ok(Err(error))) => match Errno::from_io_error(error) {
            Some(Errno::CONNREFUSED | Errno::CONNRESET) => Answer::Refused,
            Some(Errno::TIMEDOUT) => Answer::Silence,
            _ => return Err(io::Error::new(error.kind(), error.to_string())),
        },
        (None, Err(_)) => Answer::Silence,
    };
    if answer == Answer::Established {
        // What follows must arrive even if the way has changed.
        set_ttl(&socket, target, ORDINARY_TTL)?;
    }
    Ok(Reply {
        answer,
        after,
        from,
    })
}

/// A socket bound to `from`, or to a port of the kernel's choice, and that address.
fn prepare(
    target: SocketAddr,
    from: Option<SocketAddr>,
    ttl: u8,
) -> io::Result<(TcpSocket, SocketAddr)> {
    let (socket, anywhere) = if target.is_ipv4() {
        let socket = TcpSocket::new_v4()?;
        setsockopt(&socket, Ipv4RecvErr, &true)?;
        (socket, SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))
    } else {
        let socket = TcpSocket::new_v6()?;
        setsockopt(&socket, Ipv6RecvErr, &true)?;
        (socket, SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)))
    };
    set_ttl(&socket, target, ttl)?;
    socket.set_reuseaddr(true)?;
    socket.bind(from.unwrap_or(anywhere))?;
    let from = socket.local_addr()?;
    Ok((socket, from))
}

fn set_ttl(socket: impl AsFd, target: SocketAddr, ttl: u8) -> io::Result<()> {
    if target.is_ipv4() {
        sockopt::set_ip_ttl(socket, ttl.into())?;
    } else {
        sockopt::set_ipv6_unicast_hops(socket, Some(ttl))?;
    }
    Ok(())
}

/// The first ICMP error on the socket's error queue.
fn queued(socket: &OwnedFd) -> io::Result<Option<Answer>> {
    let mut control = nix::cmsg_space!(sock_extended_err, sockaddr_in6);
    let mut quoted = [0; 128];
    let mut parts = [IoSliceMut::new(&mut quoted)];
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let message =
        match recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut control), flags)
        {
            Ok(message) => message,
            Err(nix::errno::Errno::EAGAIN) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
    Ok(message.cmsgs()?.find_map(|part| match part {
        ControlMessageOwned::Ipv4RecvErr(error, Some(from)) => {
            let from = Ipv4Addr::from(u32::from_be(from.sin_addr.s_addr));
            icmp(&error).map(|answer| answer(from.into()))
        }
        ControlMessageOwned::Ipv6RecvErr(error, Some(from)) => {
            let from = Ipv6Addr::from(from.sin6_addr.s6_addr);
            icmp6(&error).map(|answer| answer(from.into()))
        }
        _ => None,
    }))
}

/// RFC 792: type 11 is "time exceeded", type 3 "destination unreachable".
fn icmp(error: &sock_extended_err) -> Option<fn(IpAddr) -> Answer> {
    match (error.ee_origin, error.ee_type) {
        (libc::SO_EE_ORIGIN_ICMP, 11) => Some(Answer::Expired),
        (libc::SO_EE_ORIGIN_ICMP, 3) => Some(Answer::Rejected),
        _ => None,
    }
}

/// RFC 4443: type 3 is "time exceeded", type 1 "destination unreachable".
fn icmp6(error: &sock_extended_err) -> Option<fn(IpAddr) -> Answer> {
    match (error.ee_origin, error.ee_type) {
        (libc::SO_EE_ORIGIN_ICMP6, 3) => Some(Answer::Expired),
        (libc::SO_EE_ORIGIN_ICMP6, 1) => Some(Answer::Rejected),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn tells_a_listener_from_a_closed_port() {
        for host in ["127.0.0.1", "::1"] {
            let listener = TcpListener::bind((host, 0)).unwrap();
            let target = listener.local_addr().unwrap();
            let reply = send(target, None, ORDINARY_TTL, PATIENCE).await.unwrap();
            assert_eq!(reply.answer, Answer::Established);
            drop(listener);
            let again = send(target, None, ORDINARY_TTL, PATIENCE).await.unwrap();
            assert_eq!(again.answer, Answer::Refused);
        }
    }

    #[tokio::test]
    async fn a_flow_keeps_its_port() {
        // Refused, so that nothing of the first is left when the second starts.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap();
        drop(listener);
        let first = send(target, None, 1, PATIENCE).await.unwrap();
        let second = send(target, Some(first.from), 2, PATIENCE).await.unwrap();
        assert_eq!(first.from, second.from);
        assert_ne!(first.from.port(), 0);
    }
}
