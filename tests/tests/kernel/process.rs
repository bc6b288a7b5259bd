//! The connections of different processes to one target, told apart by name.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use joinprobe_lab::lab::{Running, binary};
use joinprobe_lab::report::Report;
use joinprobe_lab::{Namespace, renamed, take_turn};
use probe_common::endpoint::{Role, Side};
use probe_user::bpf::{Grouping, Observer, ObserverConfig};
use rustix::process::Signal;

use super::tell;

const SERVER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 2379);

/// The name before, the name, and how often it connects. In the memory of kernels before 5.17 the end of a longer name
/// before follows the name, and must not make two of one.
const CALLS: [(&[u8], &[u8], u64); 4] = [
    (b"etcd", b"kube-controller", 3),
    (b"kube-controller", b"etcd", 5),
    (b"etcd", b"a\x1b[2J;b\xff c\\", 2),
    (b"containerd-shim", b"etcd", 1),
];

fn call(listener: &TcpListener) -> Result<()> {
    let connect = |times| {
        for _ in 0..times {
            drop(TcpStream::connect(SERVER)?);
            drop(listener.accept()?);
        }
        Ok(())
    };
    for (before, name, times) in CALLS {
        renamed(before, || renamed(name, || connect(times)))?;
    }
    Ok(())
}

#[test]
fn processes_are_told_apart_by_name() -> Result<()> {
    let Some(_turn) = take_turn(&[])? else {
        return Ok(());
    };
    Namespace::create()?.enter(|| {
        let observer = Observer::attach(&ObserverConfig {
            ports: vec![(SERVER.port(), Role::EtcdClient)],
            grouping: Grouping::Processes,
            ..ObserverConfig::default()
        })?;
        call(&TcpListener::bind(SERVER)?)?;
        let rows: BTreeMap<_, _> = observer
            .endpoints()?
            .into_iter()
            .filter(|(endpoint, _)| endpoint.side == Side::Client)
            .map(|(endpoint, counts)| {
                assert_eq!(endpoint.remote, Some(SERVER));
                let name = endpoint.process.map(|name| name.to_string());
                let handshakes = counts.distributions().handshake.len();
                (name, (counts.counters().established, handshakes))
            })
            .collect();
        let expected = [
            (r"a\u{1b}[2J;b\xff c\\", (2, 2)),
            ("etcd", (6, 6)),
            ("kube-controller", (3, 3)),
        ];
        let expected = expected.map(|(name, counts)| (Some(name.to_owned()), counts));
        assert_eq!(rows, BTreeMap::from(expected));
        assert_eq!(observer.stats().slots_used, 3);
        tell("processes", "told apart");
        Ok(())
    })?
}

#[test]
fn without_the_right_to_read_tasks_processes_share_a_row() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "setpriv"])? else {
        return Ok(());
    };
    let namespace = Namespace::create()?;
    let only = "-all,+bpf,+net_admin";
    let mut words: Vec<OsString> = ["--inh-caps", only, "--bounding-set", only, "--"]
        .map(Into::into)
        .to_vec();
    words.push(binary()?.into_os_string());
    words.extend(["watch", "-o", "json", "--by", "process"].map(Into::into));
    let mut running = Running::start(&namespace, Path::new("setpriv"), words)?;
    running.wait_ready()?;
    namespace.enter(|| call(&TcpListener::bind(SERVER)?))??;
    running.signal(Signal::TERM)?;
    let finished = running.wait()?;
    let said: Vec<_> = finished
        .stderr
        .lines()
        .filter(|line| line.contains("processes can be neither told apart"))
        .collect();
    ensure!(
        said.len() == 1 && said[0].contains("CAP_PERFMON is missing"),
        "{finished:?}"
    );
    let last = finished.stdout.lines().last().context("no output")?;
    let report = Report(serde_json::from_str(last)?);
    let row = report.target(SERVER)?;
    assert_eq!(row.number("/connections/established")?, 11, "{finished:?}");
    ensure!(!last.contains("\"process\""), "{finished:?}");
    Ok(())
}
