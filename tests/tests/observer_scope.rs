//! Which connections the observer sees, and under which name.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use joinprobe_lab::{Namespace, take_turn};
use probe_common::endpoint::{Role, Side};
use probe_common::event::EventKind;
use probe_user::bpf::{Observer, ObserverConfig, Scope};
use probe_user::measure::SlotCounts;
use rustix::net::{AddressFamily, SocketType, connect_unspec, socket};

const ETCD: &str = "127.0.0.1:2379";
/// For what comes at once on a machine that is not busy.
const PATIENCE: Duration = Duration::from_secs(20);

fn watch_etcd() -> ObserverConfig {
    ObserverConfig {
        ports: vec![(2379, Role::EtcdClient)],
        ..ObserverConfig::default()
    }
}

#[test]
fn an_ipv4_peer_has_one_name() -> Result<()> {
    in_namespace(|| {
        let observer = Observer::attach(&watch_etcd())?;
        let listener = TcpListener::bind("[::]:2379")?;
        visit(&listener, "127.0.0.1:2379")?;
        visit(&listener, "[::ffff:127.0.0.1]:2379")?;
        let remotes = remotes(&observer)?;
        assert_eq!(remotes, [(ETCD.parse()?, 2)]);
        Ok(())
    })
}

#[test]
fn other_namespaces_are_seen_only_on_demand() -> Result<()> {
    let Some(_turn) = take_turn(&[])? else {
        return Ok(());
    };
    let (own, other) = (Namespace::create()?, Namespace::create()?);
    let attach = |scope| {
        own.enter(|| {
            Observer::attach(&ObserverConfig {
                scope,
                ..watch_etcd()
            })
        })
    };
    let (narrow, wide) = (
        attach(Scope::OwnNamespace)??,
        attach(Scope::AllNamespaces)??,
    );
    for namespace in [&own, &other] {
        namespace.enter(|| -> Result<()> {
            let listener = TcpListener::bind(ETCD)?;
            visit(&listener, ETCD)
        })??;
    }
    assert_eq!(narrow.stats().flows_seen, 2);
    assert_eq!(remotes(&narrow)?, [(ETCD.parse()?, 1)]);
    // The same address in two namespaces is two endpoints.
    let here: Vec<_> = wide
        .endpoints()?
        .into_iter()
        .filter(|(endpoint, _)| {
            endpoint.side == Side::Client && endpoint.remote == ETCD.parse().ok()
        })
        .map(|(endpoint, counts)| (endpoint.netns, counts.counters().opened))
        .collect();
    ensure!(
        here.len() >= 2 && here.iter().all(|(netns, _)| *netns != 0),
        "{here:?}"
    );
    Ok(())
}

#[test]
fn a_single_address_is_watched_without_its_port() -> Result<()> {
    in_namespace(|| {
        let balancer: SocketAddr = "127.0.0.2:443".parse()?;
        let observer = Observer::attach(&ObserverConfig {
            addresses: vec![(balancer, Role::ApiServer)],
            ..watch_etcd()
        })?;
        let listener = TcpListener::bind("0.0.0.0:443")?;
        visit(&listener, "127.0.0.1:443")?;
        visit(&listener, "127.0.0.2:443")?;
        let endpoints = observer.endpoints()?;
        assert_eq!(endpoints.len(), 1, "{endpoints:?}");
        assert_eq!(endpoints[0].0.remote, Some(balancer));
        assert_eq!(endpoints[0].0.role, Role::ApiServer);
        assert_eq!(endpoints[0].1.counters().opened, 1);
        Ok(())
    })
}

#[test]
fn connections_beyond_the_slots_are_counted_together() -> Result<()> {
    in_namespace(|| {
        let observer = Observer::attach(&ObserverConfig {
            max_targets: 2,
            ..watch_etcd()
        })?;
        let listener = TcpListener::bind("0.0.0.0:2379")?;
        for last in 1..=5 {
            for _ in 0..3 {
                visit(&listener, &format!("127.0.0.{last}:2379"))?;
            }
        }
        let endpoints = observer.endpoints()?;
        let clients = || {
            endpoints
                .iter()
                .filter(|(endpoint, _)| endpoint.side == Side::Client)
        };
        let opened: u64 = clients().map(|(_, counts)| counts.counters().opened).sum();
        assert_eq!(opened, 15);
        let (_, shared) = clients()
            .find(|(endpoint, _)| endpoint.remote.is_none())
            .context("nothing shared")?;
        assert_eq!(shared.counters().overflowed, 9);
        assert_eq!(shared.distributions().handshake.len(), 9);
        assert_eq!(observer.stats().slots_exhausted, 9);
        assert_eq!(observer.stats().slots_used, 2);
        Ok(())
    })
}

#[test]
fn simultaneous_connections_are_all_counted() -> Result<()> {
    const THREADS: u64 = 4;
    const EACH: u64 = 250;
    in_namespace(|| {
        // Two observers at once, as two joinprobes would be.
        let observers = [
            Observer::attach(&watch_etcd())?,
            Observer::attach(&ObserverConfig {
                max_targets: 8,
                ..watch_etcd()
            })?,
        ];
        let listener = TcpListener::bind("0.0.0.0:2379")?;
        thread::scope(|scope| {
            let acceptor =
                scope.spawn(|| (0..THREADS * EACH).try_for_each(|_| listener.accept().map(drop)));
            let clients: Vec<_> = (0..THREADS)
                .map(|_| {
                    scope.spawn(|| {
                        (0..EACH).try_for_each(|n| {
                            // Every thread is the first one somewhere.
                            let address = format!("127.0.0.{}:2379", 1 + n % 16);
                            TcpStream::connect(address).map(drop)
                        })
                    })
                })
                .collect();
            for worker in clients.into_iter().chain([acceptor]) {
                worker
                    .join()
                    .map_err(|_| anyhow::anyhow!("a thread died"))??;
            }
            anyhow::Ok(())
        })?;
        for observer in observers {
            for side in [Side::Client, Side::Server] {
                let counted: Vec<_> = observer
                    .endpoints()?
                    .into_iter()
                    .filter(|(endpoint, _)| endpoint.side == side)
                    .map(|(_, counts)| counts)
                    .collect();
                let sum =
                    |count: &dyn Fn(&SlotCounts) -> u64| counted.iter().map(count).sum::<u64>();
                assert_eq!(sum(&|counts| counts.counters().opened), THREADS * EACH);
                assert_eq!(sum(&|counts| counts.counters().established), THREADS * EACH);
                if side == Side::Client {
                    let handshakes = sum(&|counts| counts.distributions().handshake.len());
                    let connects = sum(&|counts| counts.distributions().connect.len());
                    // A full accept queue costs a SYN, and with it the sample. The second one leaves after a second.
                    let slow = sum(&|counts| {
                        let connect = counts.distributions().connect;
                        connect.count_between(900_000, connect.high())
                    });
                    assert_eq!(connects, THREADS * EACH);
                    assert_eq!(handshakes + slow, connects, "{slow} took a second");
                }
            }
            let stats = observer.stats();
            assert_eq!(stats.flows_untracked, 0);
            assert_eq!(
                stats.slots_exhausted > 0,
                stats.slots_used == 8,
                "{stats:?}"
            );
        }
        Ok(())
    })
}

#[test]
fn a_socket_that_is_connected_again_starts_anew() -> Result<()> {
    in_namespace(|| {
        let observer = Observer::attach(&watch_etcd())?;
        let etcd = TcpListener::bind(ETCD)?;
        let elsewhere = TcpListener::bind("127.0.0.1:9999")?;
        let client = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        for listener in [&etcd, &elsewhere, &etcd] {
            rustix::net::connect(&client, &listener.local_addr()?)?;
            drop(listener.accept()?);
            connect_unspec(client.as_fd())?;
        }
        let endpoints = observer.endpoints()?;
        let (_, counts) = endpoints.first().context("nothing seen")?;
        let counters = counts.counters();
        assert_eq!(
            (counters.opened, counters.established),
            (2, 2),
            "{counters:?}"
        );
        assert_eq!(counters.closed, 2, "{counters:?}");
        assert_eq!(counts.distributions().connect.len(), 2);
        Ok(())
    })
}

#[test]
fn events_tell_of_openings_failures_and_ends() -> Result<()> {
    in_namespace(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let mut observer = Observer::attach(&ObserverConfig {
                events: true,
                ..watch_etcd()
            })?;
            let mut events = observer.events()?.context("no events")?;
            let listener = TcpListener::bind(ETCD)?;
            visit(&listener, ETCD)?;
            drop(listener);
            ensure!(TcpStream::connect(ETCD).is_err());
            let mut kinds = Vec::new();
            for _ in 0..5 {
                let event = tokio::time::timeout(PATIENCE, events.next())
                    .await
                    .with_context(|| format!("only {kinds:?}"))??;
                ensure!(event.role == Role::EtcdClient as u8);
                kinds.push((event.side, event.kind));
            }
            let (client, server) = (Side::Client as u8, Side::Server as u8);
            for expected in [
                (client, EventKind::Opened),
                (server, EventKind::Opened),
                (client, EventKind::Closed),
                (server, EventKind::Closed),
                (client, EventKind::Failed),
            ] {
                let expected = (expected.0, expected.1 as u8);
                ensure!(kinds.contains(&expected), "{expected:?} not in {kinds:?}");
            }

            // Too many at once are left out and counted.
            let listener = TcpListener::bind(ETCD)?;
            for _ in 0..200 {
                visit(&listener, ETCD)?;
            }
            let mut read = 0;
            let start = Instant::now();
            let stats = loop {
                while events.try_next().is_some() {
                    read += 1;
                }
                let stats = observer.stats();
                // The kernel may take up the last FINs later.
                let all = read + stats.events_suppressed + stats.events_lost;
                if all >= 800 || start.elapsed() > PATIENCE {
                    break stats;
                }
                sleep(Duration::from_millis(10));
            };
            ensure!(
                read < 800 && stats.events_suppressed > 0,
                "{read} {stats:?}"
            );
            ensure!(
                read + stats.events_suppressed + stats.events_lost == 800,
                "{read} {stats:?}"
            );
            Ok(())
        })
    })
}

/// Runs a test in a namespace of its own, when its turn has come.
fn in_namespace(test: impl FnOnce() -> Result<()> + Send) -> Result<()> {
    let Some(_turn) = take_turn(&[])? else {
        return Ok(());
    };
    Namespace::create()?.enter(test)?
}

/// Connects, and closes from both ends.
fn visit(listener: &TcpListener, address: &str) -> Result<()> {
    let client = TcpStream::connect(address).with_context(|| format!("connect to {address}"))?;
    let (server, _) = listener.accept()?;
    drop(client);
    drop(server);
    Ok(())
}

/// Remote addresses of the client side, and how many connections were opened to each.
fn remotes(observer: &Observer) -> Result<Vec<(SocketAddr, u64)>> {
    Ok(observer
        .endpoints()?
        .into_iter()
        .filter_map(|(endpoint, counts)| Some((endpoint.remote?, counts.counters().opened)))
        .collect())
}
