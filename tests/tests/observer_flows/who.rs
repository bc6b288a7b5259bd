//! The process that opened a connection.

use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use joinprobe_lab::lab::{Running, binary};
use joinprobe_lab::{Namespace, take_turn};
use probe_common::endpoint::{Role, Side};
use probe_common::event::{Event, EventKind};
use probe_user::bpf::{EventStream, Observer, ObserverConfig};
use rustix::process::Signal;

use super::{ETCD, in_namespace};

/// Reads events until one of this side and kind comes.
async fn event_of(events: &mut EventStream, side: Side, kind: EventKind) -> Result<Event> {
    loop {
        let next = tokio::time::timeout(Duration::from_secs(20), events.next());
        let event = next.await.context("no such event came")??;
        if (event.side, event.kind) == (side as u8, kind as u8) {
            return Ok(event);
        }
    }
}

fn name(event: &Event) -> String {
    let text = event.comm.split(|byte| *byte == 0).next();
    String::from_utf8_lossy(text.unwrap_or_default()).into_owned()
}

/// Hands the events of an observer in a namespace of its own to `test`.
fn with_events(test: impl AsyncFnOnce(&mut EventStream) -> Result<()> + Send) -> Result<()> {
    in_namespace(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let mut observer = Observer::attach(&ObserverConfig {
                ports: vec![(2379, Role::EtcdClient)],
                events: true,
                ..ObserverConfig::default()
            })?;
            ensure!(
                observer.limitations().is_empty(),
                "{:?}",
                observer.limitations()
            );
            let mut events = observer.events()?.context("no events")?;
            test(&mut events).await
        })
    })
}

#[test]
fn events_name_the_process_of_an_attempt() -> Result<()> {
    with_events(async |events| {
        let listener = TcpListener::bind(ETCD)?;
        let mut caller = Command::new("bash")
            .args(["-c", "exec 3<>/dev/tcp/127.0.0.1/2379; read -r"])
            .stdin(std::process::Stdio::piped())
            .spawn()?;
        let opened = event_of(events, Side::Client, EventKind::Opened).await?;
        drop(caller.stdin.take());
        caller.wait()?;
        assert_eq!((name(&opened).as_str(), opened.pid), ("bash", caller.id()));
        // The end is told by the same process's name, whoever runs when it comes.
        let closed = event_of(events, Side::Client, EventKind::Closed).await;
        drop(listener);
        let closed = closed?;
        assert_eq!((name(&closed).as_str(), closed.pid), ("bash", caller.id()));

        let mut caller = Command::new("bash")
            .args(["-c", ": <>/dev/tcp/127.0.0.1/2379"])
            .stderr(std::process::Stdio::null())
            .spawn()?;
        caller.wait()?;
        let failed = event_of(events, Side::Client, EventKind::Failed).await?;
        assert_eq!((name(&failed).as_str(), failed.pid), ("bash", caller.id()));
        Ok(())
    })
}

#[test]
fn a_threads_name_is_not_its_process() -> Result<()> {
    with_events(async |events| {
        let listener = TcpListener::bind(ETCD)?;
        let connection = thread::Builder::new()
            .name("a-worker".to_owned())
            .spawn(|| {
                let thread = std::fs::read_to_string("/proc/thread-self/comm")?;
                TcpStream::connect(ETCD).map(|stream| (thread, stream))
            })?
            .join()
            .ok()
            .context("the thread died")??;
        assert_eq!(connection.0.trim_end(), "a-worker");
        let opened = event_of(events, Side::Client, EventKind::Opened).await?;
        let process = std::fs::read_to_string("/proc/self/comm")?;
        assert_eq!(name(&opened), process.trim_end());
        assert_eq!(opened.pid, std::process::id());
        // Who accepts is not known: the handshake ends in an interrupt.
        let accepted = event_of(events, Side::Server, EventKind::Opened).await?;
        assert_eq!((name(&accepted).as_str(), accepted.pid), ("", 0));
        drop(listener);
        Ok(())
    })
}

#[test]
fn without_the_right_to_read_tasks_nobody_is_named() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "setpriv"])? else {
        return Ok(());
    };
    let namespace = Namespace::create()?;
    let only = "-all,+bpf,+net_admin";
    let program = binary()?;
    let words = ["--inh-caps", only, "--bounding-set", only, "--"].map(Into::into);
    let watch = ["watch", "-o", "json"].map(Into::into);
    let words = words
        .into_iter()
        .chain([program.into_os_string()])
        .chain(watch);
    let mut running = Running::start(&namespace, "setpriv".as_ref(), words)?;
    running.wait_ready()?;
    namespace.enter(|| TcpStream::connect(ETCD).is_err())?;
    running.wait_until(|running| running.printed().contains("\"kind\":\"event\""))?;
    running.signal(Signal::TERM)?;
    let finished = running.wait()?;
    let lost: Vec<_> = finished
        .stderr
        .lines()
        .filter(|line| line.contains("do not name the process"))
        .collect();
    ensure!(
        lost.len() == 1 && lost[0].contains("CAP_PERFMON is missing"),
        "{finished:?}"
    );
    let events = finished.stdout.lines().map(serde_json::from_str);
    let events: Vec<serde_json::Value> = events.collect::<Result<_, _>>()?;
    let event = events
        .iter()
        .find(|line| line["kind"] == "event")
        .with_context(|| format!("{finished:?}"))?;
    assert_eq!(event["outcome"], "failed_unknown");
    assert_eq!(event.get("process"), None);
    Ok(())
}
