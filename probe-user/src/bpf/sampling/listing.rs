//! Asks the kernel for its established TCP connections (`NETLINK_SOCK_DIAG`, `net/ipv4/inet_diag.c`).

use std::io;
use std::net::SocketAddr;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags,
};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;

use crate::bpf::tcp_info::ConnectionInfo;

/// The kernel packs no more than this into one answer (`NLMSG_GOODSIZE` and later 32 KiB).
const ANSWER: usize = 1 << 15;

/// Which end's port a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Local,
    Remote,
}

/// A connection in the kernel's list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connection {
    /// The socket's cookie (`SO_COOKIE`).
    pub(super) cookie: u64,
    pub(super) local_port: u16,
    /// IPv4-mapped addresses as IPv4.
    pub(super) remote: SocketAddr,
    pub(super) info: ConnectionInfo,
}

/// Asks about the network namespace in which it was opened, whoever uses it.
pub(super) struct Listing {
    socket: netlink_sys::Socket,
    answer: Vec<u8>,
}

impl Listing {
    /// Opens it in this thread's namespace.
    ///
    /// # Errors
    /// `EPROTONOSUPPORT` without `CONFIG_INET_DIAG` or its module, `EAFNOSUPPORT` where netlink is forbidden.
    pub(super) fn open() -> io::Result<Self> {
        let socket = netlink_sys::Socket::new(NETLINK_SOCK_DIAG)?;
        socket.connect(&netlink_sys::SocketAddr::new(0, 0))?;
        Ok(Self {
            socket,
            answer: vec![0; ANSWER],
        })
    }

    /// Shows every established connection (the peer may have closed) with this port to `visit`.
    ///
    /// # Errors
    /// `ENOENT` without `CONFIG_INET_TCP_DIAG` or its module; an answer that cannot be read.
    pub(super) fn each(
        &mut self,
        port: u16,
        end: End,
        mut visit: impl FnMut(Connection),
    ) -> io::Result<()> {
        for (family, mut id) in [
            (AF_INET, SocketId::new_v4()),
            (AF_INET6, SocketId::new_v6()),
        ] {
            match end {
                End::Local => id.source_port = port,
                End::Remote => id.destination_port = port,
            }
            self.ask(InetRequest {
                family,
                protocol: IPPROTO_TCP,
                extensions: ExtensionFlags::INFO,
                states: StateFlags::ESTABLISHED | StateFlags::CLOSE_WAIT,
                socket_id: id,
            })?;
            while self.read(&mut visit)? {}
        }
        Ok(())
    }

    fn ask(&self, request: InetRequest) -> io::Result<()> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map(drop)
    }

    /// Reads one answer; `false` after the last.
    fn read(&mut self, visit: &mut impl FnMut(Connection)) -> io::Result<bool> {
        let length = self.socket.recv(&mut self.answer.as_mut_slice(), 0)?;
        let mut rest = self.answer.get(..length).unwrap_or_default();
        while !rest.is_empty() {
            let message = NetlinkMessage::<SockDiagMessage>::deserialize(rest)
                .map_err(|error| io::Error::other(error.to_string()))?;
            match message.payload {
                NetlinkPayload::Done(done) if done.code < 0 => {
                    return Err(io::Error::from_raw_os_error(-done.code));
                }
                NetlinkPayload::Done(_) => return Ok(false),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => {
                    connection(&response).into_iter().for_each(&mut *visit);
                }
                _ => {}
            }
            // Messages begin at multiples of four.
            let taken = (message.header.length as usize).next_multiple_of(4);
            rest = rest.get(taken.max(1)..).unwrap_or_default();
        }
        Ok(true)
    }
}

fn connection(response: &InetResponse) -> Option<Connection> {
    let info = response.nlas.iter().find_map(|attribute| match attribute {
        Nla::TcpInfo(bytes) => ConnectionInfo::parse(bytes),
        _ => None,
    })?;
    let id = &response.header.socket_id;
    Some(Connection {
        cookie: u64::from_ne_bytes(id.cookie),
        local_port: id.source_port,
        remote: SocketAddr::new(id.destination_address.to_canonical(), id.destination_port),
        info,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd as _;

    use super::*;
    use crate::bpf::socket_cookie;

    #[test]
    fn both_ends_of_a_connection_are_found_by_its_port() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                // This host has no IPv6.
                assert_eq!(address, "[::1]:0");
                continue;
            };
            let server = listener.local_addr().unwrap();
            let mut client = TcpStream::connect(server).unwrap();
            let (mut accepted, _) = listener.accept().unwrap();
            client.write_all(b"question").unwrap();
            accepted.read_exact(&mut [0; 8]).unwrap();
            let mut listing = Listing::open().unwrap();
            for (end, socket, remote) in [
                (End::Remote, &client, server),
                (End::Local, &accepted, client.local_addr().unwrap()),
            ] {
                let mut found = Vec::new();
                let each = listing.each(server.port(), end, |connection| found.push(connection));
                each.unwrap();
                let cookie = socket_cookie(socket.as_fd()).unwrap();
                assert_eq!(found.len(), 1, "{found:?}");
                assert_eq!(found[0].cookie, cookie);
                assert_eq!(found[0].remote, remote);
                assert!(found[0].info.rtt_us > 0, "{found:?}");
            }
        }
    }
}
