//! What is easily counted twice, or as something it is not.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU32;
use std::os::fd::{AsFd, OwnedFd};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use joinprobe_lab::bpf::{Cgroup, OtherProgram, RWND_PACKETS};
use joinprobe_lab::link::Impairment;
use joinprobe_lab::{Link, Namespace, NodeId, take_turn};
use probe_common::endpoint::{Role, Side};
use probe_user::bpf::{Observer, ObserverConfig, unsent_and_unacked};
use probe_user::measure::SlotCounts;
use rustix::net::{AddressFamily, Protocol, SendFlags, SocketType, sockopt};

use super::ETCD;

/// Connections that each test makes.
const TIMES: u64 = 10;
/// `IPPROTO_MPTCP`.
const MPTCP: NonZeroU32 = NonZeroU32::new(262).unwrap();
/// `MSG_FASTOPEN`.
const FASTOPEN: SendFlags = SendFlags::from_bits_retain(0x2000_0000);
/// `BPF_SOCK_OPS_RTT_CB`.
const RTT_CALLBACK: u32 = 12;

fn attach() -> Result<Observer> {
    Ok(Observer::attach(&ObserverConfig {
        ports: vec![(2379, Role::EtcdClient)],
        ..ObserverConfig::default()
    })?)
}

/// What was counted at one side; nothing if it was not seen.
fn side(observer: &Observer, side: Side) -> Result<SlotCounts> {
    let mut found: Vec<_> = observer
        .endpoints()?
        .into_iter()
        .filter(|(endpoint, _)| endpoint.side == side)
        .collect();
    ensure!(found.len() <= 1, "{found:?}");
    Ok(found.pop().map(|(_, counts)| counts).unwrap_or_default())
}

/// Waits until so many connections are counted as closed at one side.
fn all_closed(observer: &Observer, one: Side, times: u64) -> Result<()> {
    let start = Instant::now();
    while side(observer, one)?.counters().closed < times {
        let counters = side(observer, one)?.counters();
        ensure!(start.elapsed() < Duration::from_secs(10), "{counters:?}");
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Asserts that either side has counted this many connections from their beginning to their end, and one handshake of
/// each at the client's.
fn each_was_counted_once(observer: &Observer, times: u64) -> Result<()> {
    for one in [Side::Client, Side::Server] {
        all_closed(observer, one, times)?;
        let counters = side(observer, one)?.counters();
        assert_eq!(counters.opened, times, "{one:?} {counters:?}");
        assert_eq!(counters.established, times, "{one:?} {counters:?}");
        assert_eq!(counters.closed, times, "{one:?} {counters:?}");
        assert_eq!(counters.reset, 0, "{one:?} {counters:?}");
    }
    let client = side(observer, Side::Client)?.distributions();
    assert_eq!(client.connect.len(), times);
    assert_eq!(client.handshake.len(), times);
    assert_eq!(observer.stats().flows_seen, 2 * times);
    Ok(())
}

/// Runs a test in a namespace with an observer, with these settings of the namespace.
fn observed(
    settings: &[(&str, &str)],
    test: impl FnOnce(&Observer) -> Result<()> + Send,
) -> Result<()> {
    let Some(_turn) = take_turn(&[])? else {
        return Ok(());
    };
    let namespace = Namespace::create()?;
    for (key, value) in settings {
        namespace.sysctl(key, value)?;
    }
    namespace.enter(|| test(&attach()?))?
}

/// A chunk from the client and one back, then both close.
fn talk(mut client: TcpStream, mut server: TcpStream) -> Result<()> {
    client.write_all(b"question")?;
    server.read_exact(&mut [0; 8])?;
    server.write_all(b"answer")?;
    client.read_exact(&mut [0; 6])?;
    Ok(())
}

fn listener(protocol: Option<Protocol>, shared: bool) -> Result<TcpListener> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, protocol)?;
    sockopt::set_socket_reuseport(&socket, shared)?;
    rustix::net::bind(&socket, &ETCD.parse::<SocketAddr>()?)?;
    rustix::net::listen(&socket, 64)?;
    Ok(TcpListener::from(socket))
}

#[test]
fn a_multipath_connection_is_counted_as_its_subflow() -> Result<()> {
    let settings = [("net.mptcp.enabled", "1")];
    observed(&settings, |observer| {
        let multipath = Some(Protocol::from_raw(MPTCP));
        let listener = listener(multipath, false)?;
        for _ in 0..TIMES {
            let client = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, multipath)?;
            rustix::net::connect(&client, &listener.local_addr()?)?;
            talk(TcpStream::from(client), listener.accept()?.0)?;
        }
        each_was_counted_once(observer, TIMES)
    })
}

#[test]
fn fast_open_changes_no_count() -> Result<()> {
    // Client and server, neither needing a cookie, on every listener.
    let settings = [("net.ipv4.tcp_fastopen", "1543")];
    observed(&settings, |observer| {
        let listener = listener(None, false)?;
        for _ in 0..TIMES {
            let client: OwnedFd =
                rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
            let sent =
                rustix::net::sendto(&client, b"question", FASTOPEN, &listener.local_addr()?)?;
            assert_eq!(sent, 8);
            let (mut server, _) = listener.accept()?;
            server.read_exact(&mut [0; 8])?;
            talk(TcpStream::from(client), server)?;
        }
        assert_eq!(counter("TCPFastOpenPassive")?, TIMES);
        each_was_counted_once(observer, TIMES)?;
        let server = side(observer, Side::Server)?.distributions();
        ensure!(server.handshake.len() <= TIMES);
        Ok(())
    })
}

#[test]
fn a_syn_cookie_gives_no_handshake_at_the_server() -> Result<()> {
    // Always, and not only under a flood.
    let settings = [("net.ipv4.tcp_syncookies", "2")];
    observed(&settings, |observer| {
        let listener = listener(None, false)?;
        for _ in 0..TIMES {
            let client = TcpStream::connect(ETCD)?;
            talk(client, listener.accept()?.0)?;
        }
        // Data that overtakes the acceptance is one more.
        ensure!(counter("SyncookiesRecv")? >= TIMES);
        each_was_counted_once(observer, TIMES)?;
        let server = side(observer, Side::Server)?.distributions();
        assert_eq!(server.handshake.len(), 0);
        Ok(())
    })
}

/// A counter of this namespace's TCP, as /proc/net/netstat names it.
fn counter(name: &str) -> Result<u64> {
    let netstat = std::fs::read_to_string("/proc/thread-self/net/netstat")?;
    let mut rows = netstat.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (
        rows.next().context("no names")?,
        rows.next().context("no values")?,
    );
    let column = names.split_whitespace().position(|known| known == name);
    let value = values
        .split_whitespace()
        .nth(column.context("no such counter")?);
    Ok(value.context("no value")?.parse()?)
}

#[test]
fn listeners_that_share_a_port_are_one_server() -> Result<()> {
    observed(&[], |observer| {
        let listeners = (0..4)
            .map(|_| listener(None, true))
            .collect::<Result<Vec<_>>>()?;
        for listener in &listeners {
            listener.set_nonblocking(true)?;
        }
        let mut chosen = [0; 4];
        for _ in 0..4 * TIMES {
            let client = TcpStream::connect(ETCD)?;
            let accept = || {
                listeners.iter().position(|one| match one.accept() {
                    Ok((server, _)) => {
                        server.set_nonblocking(false).is_ok() && talk_back(&client, server)
                    }
                    Err(_) => false,
                })
            };
            chosen[accept().context("nobody accepted")?] += 1;
        }
        ensure!(
            chosen.iter().filter(|times| **times > 0).count() > 1,
            "{chosen:?}"
        );
        each_was_counted_once(observer, 4 * TIMES)
    })
}

fn talk_back(client: &TcpStream, server: TcpStream) -> bool {
    client
        .try_clone()
        .is_ok_and(|client| talk(client, server).is_ok())
}

/// Two namespaces on a link of this RTT, the server's address in both families.
fn over_a_link(rtt: Duration) -> Result<(Namespace, Namespace, Link)> {
    let (client, server) = (Namespace::create()?, Namespace::create()?);
    let link = Link::between(&client, &server, 1)?;
    link.set_both(NodeId(0), NodeId(1), Impairment::half_of_rtt(rtt));
    Ok((client, server, link))
}

#[test]
fn both_ends_on_one_host_are_seen_by_their_own_observers() -> Result<()> {
    let Some(_turn) = take_turn(&[])? else {
        return Ok(());
    };
    let (client, server, _link) = over_a_link(Duration::from_millis(1))?;
    let at_client = client.enter(attach)??;
    let at_server = server.enter(attach)??;
    let listener = server.enter(|| TcpListener::bind("10.9.0.1:2379"))??;
    for _ in 0..TIMES {
        let stream = client.enter(|| TcpStream::connect("10.9.0.1:2379"))??;
        talk(stream, listener.accept()?.0)?;
    }
    for (observer, here, there) in [
        (&at_client, Side::Client, Side::Server),
        (&at_server, Side::Server, Side::Client),
    ] {
        all_closed(observer, here, TIMES)?;
        assert_eq!(side(observer, here)?.counters().opened, TIMES);
        assert_eq!(side(observer, here)?.counters().closed, TIMES);
        assert!(side(observer, there)?.is_empty());
        assert_eq!(observer.stats().flows_seen, TIMES);
    }
    Ok(())
}

#[test]
fn what_another_program_replies_is_no_sample() -> Result<()> {
    let Some(_turn) = take_turn(&["bpftool"])? else {
        return Ok(());
    };
    let rtt = Duration::from_millis(10);
    let folder = tempfile::tempdir()?;
    let cgroup = Cgroup::enter()?;
    let other = OtherProgram::replying_to(folder.path(), RTT_CALLBACK)?;
    // It runs first, and leaves its reply where the sample was.
    let _attached = other.attach(cgroup.path(), true)?;
    let (client, server, _link) = over_a_link(rtt)?;
    let observer = client.enter(|| {
        Observer::attach(&ObserverConfig {
            ports: vec![(2379, Role::EtcdClient)],
            cgroup: Some(cgroup.path().to_owned()),
            ..ObserverConfig::default()
        })
    })??;
    let listener = server.enter(|| TcpListener::bind("10.9.0.1:2379"))??;
    let mut stream = client.enter(|| TcpStream::connect("10.9.0.1:2379"))??;
    let (mut peer, _) = listener.accept()?;
    for _ in 0..TIMES {
        stream.write_all(b"chunk")?;
        peer.read_exact(&mut [0; 5])?;
        while unsent_and_unacked(stream.as_fd())? > 0 {
            sleep(Duration::from_millis(1));
        }
    }
    let segments = side(&observer, Side::Client)?.distributions().segment;
    assert_eq!(segments.len(), TIMES);
    ensure!(observer.stats().raw_disagreements >= TIMES);
    ensure!(
        segments.min() > u64::from(RWND_PACKETS) && segments.min() >= 9_900,
        "{} us",
        segments.min()
    );
    Ok(())
}
