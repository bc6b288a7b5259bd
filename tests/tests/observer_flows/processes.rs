//! Rows of different processes: as the events of the same connections name them.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use joinprobe_lab::renamed;
use probe_common::endpoint::{Role, Side};
use probe_common::event::EventKind;
use probe_user::bpf::{Endpoint, Grouping, Observer, ObserverConfig};
use probe_user::measure::SlotCounts;
use probe_user::target::ProcessName;
use rustix::net::{AddressFamily, Protocol, SocketType};

use super::{ETCD, in_namespace};

/// `IPPROTO_MPTCP`.
const MPTCP: NonZeroU32 = NonZeroU32::new(262).unwrap();

fn by_process(max_targets: u32) -> ObserverConfig {
    ObserverConfig {
        ports: vec![(2379, Role::EtcdClient)],
        grouping: Grouping::Processes,
        max_targets,
        events: true,
        ..ObserverConfig::default()
    }
}

fn clients(observer: &Observer) -> Result<Vec<(Endpoint, SlotCounts)>> {
    let mut found = observer.endpoints()?;
    found.retain(|(endpoint, _)| endpoint.side == Side::Client);
    Ok(found)
}

/// The name of each row and how many connections were opened there.
fn opened(rows: &[(Endpoint, SlotCounts)]) -> BTreeMap<String, u64> {
    let name = |endpoint: &Endpoint| match (endpoint.process, endpoint.remote) {
        (Some(name), _) => name.to_string(),
        (None, Some(_)) => "unknown".to_owned(),
        (None, None) => "other".to_owned(),
    };
    rows.iter()
        .map(|(endpoint, counts)| (name(endpoint), counts.counters().opened))
        .collect()
}

fn visit(listener: &TcpListener, name: &[u8], times: u32) -> Result<()> {
    renamed(name, || {
        for _ in 0..times {
            drop(TcpStream::connect(ETCD)?);
            drop(listener.accept()?);
        }
        Ok(())
    })
}

#[test]
fn more_processes_than_slots_are_counted_together() -> Result<()> {
    in_namespace(|| {
        let observer = Observer::attach(&by_process(2))?;
        let listener = TcpListener::bind(ETCD)?;
        for round in 1..=3 {
            for name in [b"kubelet", b"kubeadm", b"process", b"another"] {
                visit(&listener, name, round)?;
            }
        }
        let rows = clients(&observer)?;
        let expected = [("kubelet", 6), ("kubeadm", 6), ("other", 12)];
        assert_eq!(
            opened(&rows),
            expected.map(|(name, n)| (name.to_owned(), n)).into()
        );
        let shared = rows.last().context("no rows")?;
        assert_eq!(shared.1.counters().overflowed, 12);
        assert_eq!(observer.stats().slots_exhausted, 12);
        assert_eq!(observer.stats().slots_used, 2);
        Ok(())
    })
}

#[test]
fn segments_are_those_of_the_process_that_connected() -> Result<()> {
    in_namespace(|| {
        let listener = TcpListener::bind(ETCD)?;
        let mut before = (TcpStream::connect(ETCD)?, listener.accept()?.0);
        let observer = Observer::attach(&by_process(8))?;
        let connect = |name: &[u8]| {
            renamed(name, || {
                Ok((TcpStream::connect(ETCD)?, listener.accept()?.0))
            })
        };
        let (mut kubelet, mut etcd) = (connect(b"kubelet")?, connect(b"etcd")?);
        // Whoever sends later, under whatever name: the row is that of who connected.
        for (pair, times) in [(&mut before, 3), (&mut kubelet, 5), (&mut etcd, 7)] {
            pair.0.set_nodelay(true)?;
            for _ in 0..times {
                pair.0.write_all(b"question")?;
                pair.1.read_exact(&mut [0; 8])?;
                pair.1.write_all(b"answer")?;
                pair.0.read_exact(&mut [0; 6])?;
            }
        }
        let began = Instant::now();
        loop {
            let rows = clients(&observer)?;
            let segments: Vec<_> = rows
                .iter()
                .map(|(endpoint, counts)| {
                    let name = endpoint.process.map(|name| name.to_string());
                    (name, counts.distributions().segment.len())
                })
                .collect();
            let expected = [(None, 3), (Some("etcd"), 7), (Some("kubelet"), 5)];
            let expected = expected.map(|(name, n)| (name.map(str::to_owned), n));
            if segments == expected {
                assert_eq!(rows[0].1.counters().adopted, 1);
                return Ok(());
            }
            ensure!(began.elapsed() < Duration::from_secs(5), "{segments:?}");
            thread::sleep(Duration::from_millis(20));
        }
    })
}

#[test]
fn rows_say_what_events_say() -> Result<()> {
    in_namespace(|| {
        std::fs::write("/proc/sys/net/mptcp/enabled", "1")?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let mut observer = Observer::attach(&by_process(8))?;
            let mut events = observer.events()?.context("no events")?;
            let listener = TcpListener::bind(ETCD)?;
            visit(&listener, b"odd\x1b\xe2\x82", 2)?;
            // By a thread with a name of its own.
            thread::scope(|scope| {
                let worker = thread::Builder::new().name("a-worker".to_owned());
                let visit = || TcpStream::connect(ETCD).map(drop);
                worker
                    .spawn_scoped(scope, visit)?
                    .join()
                    .ok()
                    .context("the thread died")?
                    .context("not connected")
            })?;
            // Over MPTCP, whose first subflow the caller opens.
            renamed(b"multipath", || {
                let server: SocketAddr = ETCD.parse()?;
                let socket: OwnedFd = rustix::net::socket(
                    AddressFamily::INET,
                    SocketType::STREAM,
                    Some(Protocol::from_raw(MPTCP)),
                )?;
                Ok(rustix::net::connect(&socket, &server)?)
            })?;
            let mut told = BTreeMap::<String, u64>::new();
            for _ in 0..4 {
                let event = loop {
                    let next = tokio::time::timeout(Duration::from_secs(20), events.next());
                    let event = next.await.context("no such event came")??;
                    let kind = (EventKind::Opened as u8, Side::Client as u8);
                    if (event.kind, event.side) == kind {
                        break event;
                    }
                };
                let name = ProcessName::new(event.comm);
                let name = name.map_or_else(|| "unknown".to_owned(), |name| name.to_string());
                *told.entry(name).or_default() += 1;
            }
            assert_eq!(opened(&clients(&observer)?), told);
            let own = std::fs::read_to_string("/proc/self/comm")?;
            for (name, times) in [
                (r"odd\u{1b}\xe2\x82", 2),
                (own.trim_end(), 1),
                ("multipath", 1),
            ] {
                assert_eq!(told.get(name), Some(&times), "{told:?}");
            }
            Ok(())
        })
    })
}
