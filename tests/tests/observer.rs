//! The observer against real connections on a namespace's loopback.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use joinprobe_lab::{Namespace, take_turn};
use probe_common::endpoint::{Role, Side};
use probe_user::bpf::{
    Endpoint, Observer, ObserverConfig, RttSource, socket_cookie, unsent_and_unacked,
};
use probe_user::measure::SlotCounts;
use rustix::net::{AddressFamily, SocketType};

#[test]
fn counts_every_connection_once_per_side() -> Result<()> {
    let Some(_turn) = take_turn(&[])? else {
        return Ok(());
    };
    let namespace = Namespace::create()?;
    namespace.enter(|| {
        let observer = Observer::attach(&ObserverConfig {
            ports: vec![(2379, Role::EtcdClient), (2380, Role::EtcdPeer)],
            ..ObserverConfig::default()
        })?;
        connect("127.0.0.1:2379", 20)?;
        connect("[::1]:2380", 10)?;
        let endpoints = closed(&observer, 60)?;
        ensure!(endpoints.len() == 4, "{endpoints:?}");
        for (role, remote, times) in [
            (Role::EtcdClient, "127.0.0.1:2379", 20),
            (Role::EtcdPeer, "[::1]:2380", 10),
        ] {
            let client = find(&endpoints, role, Side::Client, Some(remote))?;
            assert_eq!(client.distributions().handshake.len(), times);
            assert_eq!(client.distributions().connect.len(), times);
            let server = find(&endpoints, role, Side::Server, None)?;
            assert_eq!(server.distributions().connect.len(), 0);
            for counts in [client, server] {
                assert_eq!(counts.counters().opened, times);
                assert_eq!(counts.counters().established, times);
                assert_eq!(counts.counters().closed, times);
                assert_eq!(counts.counters().reset, 0);
            }
        }
        assert_eq!(observer.stats().flows_seen, 60);
        Ok(())
    })?
}

#[test]
fn a_marked_connection_is_measured_apart() -> Result<()> {
    let Some(_turn) = take_turn(&[])? else {
        return Ok(());
    };
    let namespace = Namespace::create()?;
    namespace.enter(|| {
        let mut observer = Observer::attach(&ObserverConfig {
            own_only: true,
            ..ObserverConfig::default()
        })?;
        let probes = observer.own_probes();
        let slot = observer.new_slot().context("no slot")?;
        let address: SocketAddr = "127.0.0.1:7000".parse()?;
        let listener = TcpListener::bind(address)?;
        // Nobody marked these.
        for _ in 0..5 {
            TcpStream::connect(address)?;
            listener.accept()?;
        }
        let socket: OwnedFd = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
        let cookie = socket_cookie(socket.as_fd())?;
        probes.mark(cookie, slot, Role::EtcdClient)?;
        rustix::net::connect(&socket, &address)?;
        let mut client = TcpStream::from(socket);
        client.set_nodelay(true)?;
        let (mut server, _) = listener.accept()?;

        for sent in 1..=10 {
            send(&mut client, &mut server)?;
            assert_eq!(probes.path_progress(slot).0, sent);
        }
        assert!(probes.path_progress(slot).1 > 0);
        probes.end_pacing(cookie)?;
        for _ in 0..3 {
            send(&mut client, &mut server)?;
        }
        drop(client);
        drop(server);
        probes.forget(cookie);

        let counts = observer.read_slot(slot);
        let distributions = counts.distributions();
        assert_eq!(counts.counters().opened, 1);
        assert_eq!(distributions.handshake.len(), 1);
        assert_eq!(distributions.path.len(), 10);
        assert_eq!(distributions.segment.len(), 3);
        assert_eq!(distributions.segment_min.len(), 1);
        assert_eq!(counts.counters().segments_out, 13);
        assert_eq!(observer.stats().flows_seen, 1);
        assert_eq!(observer.rtt_source(), Some(RttSource::Raw));
        observer.reset_slot(slot);
        assert!(observer.read_slot(slot).is_empty());
        Ok(())
    })?
}

/// Sends a chunk and waits until it is acknowledged, so that it gives one sample.
fn send(client: &mut TcpStream, server: &mut TcpStream) -> Result<()> {
    client.write_all(b"chunk")?;
    let mut chunk = [0; 5];
    server.read_exact(&mut chunk)?;
    let start = Instant::now();
    while unsent_and_unacked(client.as_fd())? > 0 {
        ensure!(
            start.elapsed() < Duration::from_secs(20),
            "not acknowledged"
        );
        sleep(Duration::from_millis(1));
    }
    // A chunk that follows at once would share its acknowledgement.
    sleep(Duration::from_millis(20));
    Ok(())
}

/// The endpoints, once so many ends of connections are counted as closed: the kernel may take up a FIN later.
fn closed(observer: &Observer, ends: u64) -> Result<Vec<(Endpoint, SlotCounts)>> {
    let start = Instant::now();
    loop {
        let endpoints = observer.endpoints()?;
        let closed: u64 = endpoints
            .iter()
            .map(|(_, counts)| counts.counters().closed)
            .sum();
        if closed >= ends || start.elapsed() > Duration::from_secs(10) {
            return Ok(endpoints);
        }
        sleep(Duration::from_millis(10));
    }
}

fn connect(address: &str, times: u32) -> Result<()> {
    let address: SocketAddr = address.parse()?;
    let listener = TcpListener::bind(address).with_context(|| format!("bind {address}"))?;
    for _ in 0..times {
        let client = TcpStream::connect(address)?;
        let (server, _) = listener.accept()?;
        drop(client);
        drop(server);
    }
    Ok(())
}

fn find<'a>(
    endpoints: &'a [(Endpoint, SlotCounts)],
    role: Role,
    side: Side,
    remote: Option<&str>,
) -> Result<&'a SlotCounts> {
    let remote = remote.map(str::parse).transpose()?;
    endpoints
        .iter()
        .find(|(endpoint, _)| {
            endpoint.role == role && endpoint.side == side && endpoint.remote == remote
        })
        .map(|(_, counts)| counts)
        .with_context(|| format!("no {role:?} {side:?} {remote:?} in {endpoints:?}"))
}
