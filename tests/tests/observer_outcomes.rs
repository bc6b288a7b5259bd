//! What becomes of connections, as the observer tells it.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use joinprobe_lab::link::{DEVICE, DropRule};
use joinprobe_lab::{Capture, Link, Namespace, NodeId, take_turn};
use probe_common::cells::Counter;
use probe_common::endpoint::{Role, Side};
use probe_common::event::EventKind;
use probe_user::bpf::{Observer, ObserverConfig};
use probe_user::measure::{Counters, SlotCounts};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

const PORT: u16 = 2379;
/// For what comes at once on a machine that is not busy.
const PATIENCE: Duration = Duration::from_secs(20);

/// Two namespaces on a link, an observer in the first one.
struct Pair {
    client: Namespace,
    server: Namespace,
    link: Link,
    observer: Observer,
}

impl Pair {
    fn new() -> Result<Self> {
        let (client, server) = (Namespace::create()?, Namespace::create()?);
        // One retry, so that giving up takes seconds and not minutes.
        client.sysctl("net.ipv4.tcp_syn_retries", "1")?;
        let link = Link::between(&client, &server, 1)?;
        let observer = client.enter(|| {
            Observer::attach(&ObserverConfig {
                ports: vec![(PORT, Role::EtcdClient)],
                ..ObserverConfig::default()
            })
        })??;
        Ok(Self {
            client,
            server,
            link,
            observer,
        })
    }

    fn listen(&self, address: IpAddr) -> Result<TcpListener> {
        Ok(self.server.enter(|| TcpListener::bind((address, PORT)))??)
    }

    fn connect(&self, address: IpAddr) -> Result<std::io::Result<TcpStream>> {
        self.client.enter(|| TcpStream::connect((address, PORT)))
    }

    fn counts(&self, address: IpAddr) -> Result<SlotCounts> {
        let remote = SocketAddr::new(address, PORT);
        self.observer
            .endpoints()?
            .into_iter()
            .find(|(endpoint, _)| endpoint.side == Side::Client && endpoint.remote == Some(remote))
            .map(|(_, counts)| counts)
            .with_context(|| format!("{remote} was not seen"))
    }

    fn counters(&self, address: IpAddr) -> Result<Counters> {
        Ok(self.counts(address)?.counters())
    }
}

fn addresses() -> Result<[IpAddr; 2]> {
    Ok(["10.9.0.1".parse()?, "fd00:9::1".parse()?])
}

#[test]
fn failed_connects_have_their_cause() -> Result<()> {
    let Some(_turn) = take_turn(&["ss", "tcpdump"])? else {
        return Ok(());
    };
    let pair = Pair::new()?;
    for address in addresses()? {
        // Nobody listens.
        assert!(pair.connect(address)?.is_err());
        let counters = pair.counters(address)?;
        assert_eq!((counters.opened, counters.refused), (1, 1), "{counters:?}");

        // Nobody answers; the caller gives up before the kernel does.
        pair.link.set_dead(address, true);
        let socket = begin_connect(&pair.client, address)?;
        sleep(Duration::from_millis(50));
        drop(socket);
        let counters = pair.counters(address)?;
        assert_eq!(counters.abandoned, 1, "{counters:?}");

        // Nobody answers, until the kernel gives up.
        let capture = Capture::start(&pair.client, DEVICE)?;
        assert!(pair.connect(address)?.is_err());
        let sent_again = capture.stop()?.flows()[0].syns() - 1;
        let counters = pair.counters(address)?;
        assert_eq!(counters.timed_out, 1, "{counters:?}");
        assert_eq!(counters.syn_retransmits, sent_again as u64, "{counters:?}");
        pair.link.set_dead(address, false);

        assert_eq!((counters.opened, counters.established), (3, 0));
        assert_eq!(counters.failed_unknown, 0);
        assert_eq!(pair.counts(address)?.distributions().handshake.len(), 0);
    }
    Ok(())
}

#[test]
fn what_a_router_cannot_reach_is_unreachable() -> Result<()> {
    let Some(_turn) = take_turn(&[])? else {
        return Ok(());
    };
    let pair = Pair::new()?;
    for key in ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"] {
        pair.server.sysctl(key, "1")?;
    }
    for beyond in ["10.99.0.1", "fd99::1"] {
        let address: IpAddr = beyond.parse()?;
        pair.link.route(address, NodeId(1));
        pair.client
            .ip(&format!("route add {beyond} dev {DEVICE}"))?;
        pair.server.ip(&format!("route add unreachable {beyond}"))?;
        assert!(pair.connect(address)?.is_err());
        let counters = pair.counters(address)?;
        assert_eq!(
            (counters.opened, counters.unreachable, counters.timed_out),
            (1, 1, 0),
            "{counters:?}"
        );
        // By the router's answer, and not for want of one: no SYN was sent again.
        assert_eq!(counters.syn_retransmits, 0, "{counters:?}");
    }
    Ok(())
}

#[test]
fn an_abandoned_attempt_tells_how_long_and_how_often() -> Result<()> {
    let Some(_turn) = take_turn(&[])? else {
        return Ok(());
    };
    let pair = Pair::new()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut observer = pair.client.enter(|| {
            Observer::attach(&ObserverConfig {
                ports: vec![(PORT, Role::EtcdClient)],
                events: true,
                ..ObserverConfig::default()
            })
        })??;
        let mut events = observer.events()?.context("no events")?;
        for address in addresses()? {
            pair.link.set_dead(address, true);
            let start = Instant::now();
            let socket = begin_connect(&pair.client, address)?;
            // The first SYN is sent again after a second.
            sleep(Duration::from_millis(1500));
            drop(socket);
            let longest = start.elapsed();
            let event = tokio::time::timeout(PATIENCE, events.next()).await??;
            assert_eq!(event.kind, EventKind::Failed as u8);
            assert_eq!(u32::from(event.outcome), Counter::Abandoned as u32);
            assert_eq!(event.syn_retransmits, 1);
            let waited = Duration::from_micros(event.waited_us);
            ensure!(
                waited >= Duration::from_millis(1500) && waited <= longest,
                "{waited:?} of {longest:?}"
            );
            pair.link.set_dead(address, false);
        }
        Ok(())
    })
}

#[test]
fn a_lost_syn_costs_connect_time_and_no_handshake_sample() -> Result<()> {
    let Some(_turn) = take_turn(&["ss", "tcpdump"])? else {
        return Ok(());
    };
    let pair = Pair::new()?;
    for address in addresses()? {
        let _listener = pair.listen(address)?;
        pair.connect(address)??;
        pair.link
            .drop_segments(DropRule::syn(1..=1).of_server(address));
        pair.connect(address)??;
        let counts = pair.counts(address)?;
        let (distributions, counters) = (counts.distributions(), counts.counters());
        assert_eq!(counters.established, 2);
        assert_eq!(counters.syn_retransmits, 1);
        assert_eq!(distributions.handshake.len(), 1);
        assert_eq!(distributions.connect.len(), 2);
        let slowest = distributions.connect.max();
        // A second SYN would have left after two seconds at the earliest.
        assert!((990_000..2_000_000).contains(&slowest), "{slowest} us");
    }
    Ok(())
}

#[test]
fn lost_data_is_counted_as_retransmitted() -> Result<()> {
    let Some(_turn) = take_turn(&["ss", "tcpdump"])? else {
        return Ok(());
    };
    let pair = Pair::new()?;
    for address in addresses()? {
        let listener = pair.listen(address)?;
        pair.link
            .drop_segments(DropRule::data_to(PORT, 2..=3).of_server(address));
        let mut client = pair.connect(address)??;
        let (mut server, _) = listener.accept()?;
        for _ in 0..5 {
            client.write_all(b"chunk")?;
            server.read_exact(&mut [0; 5])?;
        }
        let expected = retransmitted(&pair.client, &client)?;
        drop((client, server));
        wait_for(|| Ok(pair.counters(address)?.closed == 1))?;
        let counters = pair.counters(address)?;
        assert_eq!(counters.retransmits, expected, "{counters:?}");
        assert!(counters.retransmits >= 2, "{counters:?}");
        assert_eq!(counters.segments_out, 5 + expected, "{counters:?}");
        assert_eq!(counters.syn_retransmits, 0);
    }
    Ok(())
}

#[test]
fn a_reset_is_told_from_a_close() -> Result<()> {
    let Some(_turn) = take_turn(&["ss", "tcpdump"])? else {
        return Ok(());
    };
    let pair = Pair::new()?;
    for address in addresses()? {
        let listener = pair.listen(address)?;
        let client = pair.connect(address)??;
        drop(listener.accept()?);
        drop(client);
        wait_for(|| Ok(pair.counters(address)?.closed == 1))?;
        assert_eq!(pair.counters(address)?.reset, 0);

        // Closing with unread data sends a RST.
        let mut client = pair.connect(address)??;
        let (server, _) = listener.accept()?;
        client.write_all(b"unread")?;
        sleep(Duration::from_millis(100));
        drop(server);
        wait_for(|| Ok(pair.counters(address)?.reset == 1))?;
        assert_eq!(pair.counters(address)?.closed, 2);
        drop(client);

        // So does this end's own closing, and that is no event of the network.
        let client = pair.connect(address)??;
        let (mut server, _) = listener.accept()?;
        server.write_all(b"unread")?;
        sleep(Duration::from_millis(100));
        drop(client);
        wait_for(|| Ok(pair.counters(address)?.closed == 3))?;
        let client = pair.connect(address)??;
        rustix::net::sockopt::set_socket_linger(&client, Some(Duration::ZERO))?;
        drop(client);
        wait_for(|| Ok(pair.counters(address)?.closed == 4))?;
        assert_eq!(pair.counters(address)?.reset, 1);
    }
    Ok(())
}

/// Starts a connect and does not wait for it.
fn begin_connect(namespace: &Namespace, address: IpAddr) -> Result<OwnedFd> {
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    namespace.enter(|| {
        let flags = SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        let begun = rustix::net::connect(&socket, &SocketAddr::new(address, PORT));
        ensure!(begun == Err(rustix::io::Errno::INPROGRESS), "{begun:?}");
        Ok(socket)
    })?
}

/// Segments that the kernel sent again on this connection, by its own count (`TCP_INFO`, which `ss` shows).
fn retransmitted(namespace: &Namespace, stream: &TcpStream) -> Result<u64> {
    let filter = format!("sport = :{}", stream.local_addr()?.port());
    let output = namespace.output(Command::new("ss").args(["-tinHO", &filter]))?;
    let text = String::from_utf8(output.stdout)?;
    let field = text
        .split_whitespace()
        .find_map(|word| word.strip_prefix("retrans:"))
        .with_context(|| format!("no retransmissions in {text}"))?;
    let (_now, total) = field.split_once('/').context("no total")?;
    Ok(total.parse()?)
}

fn wait_for(condition: impl Fn() -> Result<bool>) -> Result<()> {
    let start = Instant::now();
    while !condition()? {
        ensure!(start.elapsed() < PATIENCE, "it never came");
        sleep(Duration::from_millis(10));
    }
    Ok(())
}
