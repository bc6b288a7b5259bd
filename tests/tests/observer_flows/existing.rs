//! Connections that were there before the observer.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use joinprobe_lab::bpf::CallbackFlags;
use joinprobe_lab::programs::command;
use joinprobe_lab::{Namespace, attempts, on_time, take_turn};
use probe_common::endpoint::{Role, Side};
use probe_user::bpf::{Endpoint, Observer, ObserverConfig, Scope};
use probe_user::measure::SlotCounts;

/// `BPF_SOCK_OPS_RTT_CB_FLAG`, `..._RETRANS_...`, `..._STATE_...`.
pub(super) const CALLBACKS: u32 = 8 | 2 | 4;

/// A connection on which both ends send all the time. Dropping it closes both.
pub(super) struct Busy {
    ends: [TcpStream; 2],
    stop: Arc<AtomicBool>,
    workers: Vec<JoinHandle<()>>,
}

impl Busy {
    pub(super) fn start(namespace: &Namespace, address: &str) -> Result<Self> {
        let ends = namespace.enter(|| -> Result<_> {
            let listener = TcpListener::bind(address)?;
            let client = TcpStream::connect(address)?;
            Ok([client, listener.accept()?.0])
        })??;
        let stop = Arc::new(AtomicBool::new(false));
        let mut workers = Vec::new();
        for end in &ends {
            let (mut writer, mut reader) = (end.try_clone()?, end.try_clone()?);
            let stopped = Arc::clone(&stop);
            workers.push(spawn(move || {
                let block = [0; 4096];
                while !stopped.load(Ordering::Relaxed) && writer.write_all(&block).is_ok() {
                    sleep(Duration::from_millis(1));
                }
            }));
            workers.push(spawn(move || {
                let mut block = [0; 4096];
                while reader.read(&mut block).is_ok_and(|length| length > 0) {}
            }));
        }
        Ok(Self {
            ends,
            stop,
            workers,
        })
    }

    /// Local and remote port, at each end.
    pub(super) fn ports(&self) -> Result<Vec<(u16, u16)>> {
        let ports = |end: &TcpStream| Ok((end.local_addr()?.port(), end.peer_addr()?.port()));
        self.ends.iter().map(ports).collect()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for end in &self.ends {
            let _ = end.shutdown(std::net::Shutdown::Both);
        }
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

fn attach(namespace: &Namespace, scope: Scope) -> Result<Observer> {
    let observer = namespace.enter(|| {
        Observer::attach(&ObserverConfig {
            ports: vec![(2379, Role::EtcdClient), (2380, Role::EtcdPeer)],
            scope,
            ..ObserverConfig::default()
        })
    })??;
    let lost = observer.limitations();
    ensure!(lost.is_empty(), "{lost:?}");
    Ok(observer)
}

fn counts(observer: &Observer, role: Role, side: Side) -> Result<SlotCounts> {
    let endpoints = observer.endpoints()?;
    let is = |endpoint: &Endpoint| endpoint.role == role && endpoint.side == side;
    endpoints
        .into_iter()
        .find(|(endpoint, _)| is(endpoint))
        .map(|(_, counts)| counts)
        .with_context(|| format!("no {role:?} {side:?}"))
}

fn segments(observer: &Observer, role: Role, side: Side) -> Result<u64> {
    Ok(counts(observer, role, side)?.distributions().segment.len())
}

/// Waits until more samples than these are counted.
fn grows(observer: &Observer, role: Role, side: Side) -> Result<()> {
    let (before, start) = (segments(observer, role, side)?, Instant::now());
    while segments(observer, role, side)? < before + 5 {
        ensure!(
            start.elapsed() < Duration::from_secs(10),
            "{role:?} {side:?} stays at {before} samples"
        );
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

#[test]
fn they_are_adopted_and_given_back() -> Result<()> {
    let Some(_turn) = take_turn(&["bpftool"])? else {
        return Ok(());
    };
    attempts(3, adopt_and_give_back)
}

/// Ids of the `sock_ops` programs that are loaded on this host, whoever loaded them.
pub(super) fn sock_ops_programs() -> Result<BTreeSet<u64>> {
    let output = command("bpftool").args(["-j", "prog", "list"]).output()?;
    let programs: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let all = programs.as_array().context("bpftool printed no list")?;
    let ours = all.iter().filter(|program| program["type"] == "sock_ops");
    Ok(ours.filter_map(|program| program["id"].as_u64()).collect())
}

fn adopt_and_give_back() -> Result<()> {
    let foreign = sock_ops_programs()?;
    let namespace = Namespace::create()?;
    // What is sent again is to be what was lost, and not what a busy machine acknowledges late: no tail loss probes.
    namespace.sysctl("net.ipv4.tcp_early_retrans", "0")?;
    let folder = tempfile::tempdir()?;
    let flags = CallbackFlags::load(folder.path())?;
    let watched = [
        Busy::start(&namespace, "127.0.0.1:2379")?,
        Busy::start(&namespace, "[::1]:2380")?,
    ];
    let other = Busy::start(&namespace, "127.0.0.1:9999")?;
    let before = flags.of(&namespace)?;

    let observer = attach(&namespace, Scope::OwnNamespace)?;
    assert_eq!(observer.stats().flows_adopted, 4);
    for role in [Role::EtcdClient, Role::EtcdPeer] {
        for side in [Side::Client, Side::Server] {
            grows(&observer, role, side)?;
            let counts = counts(&observer, role, side)?;
            let counters = counts.counters();
            assert_eq!((counters.adopted, counters.opened), (1, 0), "{counters:?}");
            assert_eq!(counters.retransmits, 0, "{counters:?}");
            assert_eq!(counts.distributions().handshake.len(), 0);
            assert_eq!(counts.distributions().connect.len(), 0);
        }
    }
    // What comes later is not adopted.
    let later = Busy::start(&namespace, "127.0.0.2:2379")?;
    assert_eq!(observer.stats().flows_adopted, 4);
    let during = flags.of(&namespace)?;
    for busy in watched.iter().chain([&later]) {
        for ports in busy.ports()? {
            assert_eq!(during.get(&ports), Some(&CALLBACKS), "{ports:?}");
        }
    }
    for ports in other.ports()? {
        assert_eq!(during.get(&ports), Some(&0), "{ports:?}");
    }

    drop(observer);
    let after = flags.of(&namespace)?;
    for busy in watched.iter().chain([&other]) {
        for ports in busy.ports()? {
            assert!(before.contains_key(&ports), "{ports:?}");
        }
    }
    // While another observer is loaded on this host, callbacks stay: it may need them.
    let kept = foreign.intersection(&sock_ops_programs()?).next().is_some();
    let ours = watched.iter().chain([&later]).map(|busy| (busy, true));
    for (busy, was_ours) in ours.chain([(&other, false)]) {
        for ports in busy.ports()? {
            let had = before.get(&ports).copied().unwrap_or(0);
            let expected = if kept && was_ours { CALLBACKS } else { had };
            let has = after.get(&ports);
            // One that has just ended is not gone at once.
            on_time(has == Some(&expected), || {
                format!("{ports:?}: {has:?}, expected {expected}")
            })?;
        }
    }
    Ok(())
}

#[test]
fn an_observer_that_goes_leaves_another_its_callbacks() -> Result<()> {
    let Some(_turn) = take_turn(&[])? else {
        return Ok(());
    };
    let namespace = Namespace::create()?;
    let _busy = Busy::start(&namespace, "127.0.0.1:2379")?;
    let first = attach(&namespace, Scope::OwnNamespace)?;
    let second = attach(&namespace, Scope::OwnNamespace)?;
    for observer in [&first, &second] {
        assert_eq!(observer.stats().flows_adopted, 2);
        grows(observer, Role::EtcdClient, Side::Client)?;
    }
    drop(first);
    grows(&second, Role::EtcdClient, Side::Client)?;
    grows(&second, Role::EtcdClient, Side::Server)
}

#[test]
fn the_end_of_an_adopted_connection_is_counted() -> Result<()> {
    let Some(_turn) = take_turn(&[])? else {
        return Ok(());
    };
    let namespace = Namespace::create()?;
    let busy = Busy::start(&namespace, "127.0.0.1:2379")?;
    let observer = attach(&namespace, Scope::OwnNamespace)?;
    grows(&observer, Role::EtcdClient, Side::Client)?;
    drop(busy);
    let start = Instant::now();
    while counts(&observer, Role::EtcdClient, Side::Client)?
        .counters()
        .closed
        == 0
    {
        ensure!(start.elapsed() < Duration::from_secs(10), "never closed");
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

#[test]
fn those_of_other_namespaces_only_on_demand() -> Result<()> {
    let Some(_turn) = take_turn(&[])? else {
        return Ok(());
    };
    let (own, other) = (Namespace::create()?, Namespace::create()?);
    let _busy = [
        Busy::start(&own, "127.0.0.1:2379")?,
        Busy::start(&other, "127.0.0.1:2379")?,
    ];
    let narrow = attach(&own, Scope::OwnNamespace)?;
    assert_eq!(narrow.stats().flows_adopted, 2);
    drop(narrow);
    let wide = attach(&own, Scope::AllNamespaces)?;
    // The same address in two namespaces is two endpoints.
    let endpoints = wide.endpoints()?;
    let here: Vec<_> = endpoints
        .iter()
        .filter(|(endpoint, counts)| {
            endpoint.side == Side::Client
                && endpoint.netns != 0
                && endpoint.remote == super::ETCD.parse().ok()
                && counts.counters().adopted == 1
        })
        .collect();
    ensure!(here.len() >= 2, "{here:?}");
    Ok(())
}
