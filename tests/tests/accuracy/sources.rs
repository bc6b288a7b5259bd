//! Where RTT samples come from, and that a reconstructed one is the raw one.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use joinprobe_lab::lab::{Finished, Running, binary};
use joinprobe_lab::{Impairment, Link, Namespace, NodeId, take_turn};
use probe_common::endpoint::Role;
use probe_user::bpf::{RttSource, socket_cookie};
use rustix::net::{AddressFamily, SocketType};

use crate::samples::Watcher;

const PORT: u16 = 7000;

/// A watcher and the samples it saw of one connection, by their number.
struct Follower {
    watcher: Watcher,
    samples: BTreeMap<u64, u32>,
}

impl Follower {
    fn attach(source: RttSource) -> Result<Self> {
        Ok(Self {
            watcher: Watcher::attach(source)?,
            samples: BTreeMap::new(),
        })
    }

    fn look(&mut self) {
        let (count, last) = self.watcher.probes.path_progress(self.watcher.slot);
        if count > 0 {
            self.samples.insert(count, last);
        }
    }
}

/// Sends `count` messages, each after the answer to the one before, on a connection that all watchers know.
fn ping_pong(address: SocketAddr, count: u64, watchers: &mut [Follower]) -> Result<()> {
    let socket: OwnedFd = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    let cookie = socket_cookie(socket.as_fd())?;
    for Follower { watcher, .. } in &*watchers {
        watcher
            .probes
            .mark(cookie, watcher.slot, Role::EtcdClient)?;
    }
    rustix::net::connect(&socket, &address)?;
    let mut stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    for _ in 0..count {
        stream.write_all(b"chunk")?;
        stream.read_exact(&mut [0; 5])?;
        watchers.iter_mut().for_each(Follower::look);
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    ensure!(stream.read(&mut [0; 5])? == 0, "more than was sent");
    drop(stream);
    watchers.iter_mut().for_each(Follower::look);
    Ok(())
}

fn serve(listener: &TcpListener) -> Result<()> {
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let mut bytes = [0; 64];
    loop {
        let length = stream.read(&mut bytes)?;
        if length == 0 {
            return Ok(());
        }
        stream.write_all(&bytes[..length])?;
    }
}

/// Holds the samples of the first watcher against those of the second.
fn compare([raw, rebuilt]: &[Follower; 2], count: u64) -> String {
    let both: Vec<(u32, u32)> = raw
        .samples
        .iter()
        .filter_map(|(number, raw)| Some((*raw, *rebuilt.samples.get(number)?)))
        .collect();
    let different: Vec<_> = both.iter().filter(|(a, b)| a != b).collect();
    let dropped = rebuilt
        .watcher
        .observer
        .read_slot(rebuilt.watcher.slot)
        .counters()
        .dropped_samples;
    let line = format!(
        "{} samples of {count} messages compared, {} to {} us: {} differ, {dropped} dropped",
        both.len(),
        both.iter().map(|(raw, _)| raw).min().unwrap_or(&0),
        both.iter().map(|(raw, _)| raw).max().unwrap_or(&0),
        different.len()
    );
    assert!(
        both.len() as u64 * 100 >= count * 99,
        "{} of {count}",
        both.len()
    );
    assert!(different.len() * 1000 <= both.len(), "{different:?}");
    let counts = |Follower { watcher, .. }: &Follower| {
        let counts = watcher.observer.read_slot(watcher.slot);
        let distributions = counts.distributions();
        distributions.path.len() + counts.counters().retransmitted_samples
    };
    assert_eq!(counts(raw), counts(rebuilt));
    line
}

fn attach_both() -> Result<[Follower; 2]> {
    let watchers = [
        Follower::attach(RttSource::Raw)?,
        Follower::attach(RttSource::Reconstructed)?,
    ];
    let sources = watchers
        .each_ref()
        .map(|follower| follower.watcher.observer.rtt_source());
    assert_eq!(
        sources,
        [Some(RttSource::Raw), Some(RttSource::Reconstructed)]
    );
    Ok(watchers)
}

#[test]
fn reconstructed_samples_are_the_raw_ones_on_loopback() -> Result<()> {
    const MESSAGES: u64 = 5000;
    let Some(_turn) = take_turn(&[])? else {
        return Ok(());
    };
    Namespace::create()?.enter(|| {
        let mut watchers = attach_both()?;
        let address = SocketAddr::from(([127, 0, 0, 1], PORT));
        let listener = TcpListener::bind(address)?;
        thread::scope(|scope| {
            let server = scope.spawn(|| serve(&listener));
            ping_pong(address, MESSAGES, &mut watchers)?;
            server
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        println!("{}", compare(&watchers, MESSAGES));
        Ok(())
    })?
}

#[test]
fn reconstructed_samples_are_the_raw_ones_over_a_lossy_link() -> Result<()> {
    const MESSAGES: u64 = 600;
    let Some(_turn) = take_turn(&[])? else {
        return Ok(());
    };
    let (client, server) = (Namespace::create()?, Namespace::create()?);
    let link = Link::between(&client, &server, 7)?;
    let shape = Impairment::half_of_rtt(Duration::from_millis(3))
        .with_jitter(Duration::from_millis(1))
        .with_loss(0.005);
    link.set_both(NodeId(0), NodeId(1), shape);
    let address = SocketAddr::from(([10, 9, 0, 1], PORT));
    let listener = server.enter(|| TcpListener::bind(address))??;
    thread::scope(|scope| {
        let server = scope.spawn(|| serve(&listener));
        client.enter(|| -> Result<()> {
            let mut watchers = attach_both()?;
            ping_pong(address, MESSAGES, &mut watchers)?;
            // Lost messages take no sample, or one of a retransmission.
            println!("{}", compare(&watchers, MESSAGES * 95 / 100));
            Ok(())
        })??;
        server
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// What a preflight of a dead port says with these capabilities and this source; it need not reach anything.
fn preflight(capabilities: &str, source: &str) -> Result<Finished> {
    let namespace = Namespace::create()?;
    let words = [
        "--inh-caps",
        capabilities,
        "--bounding-set",
        capabilities,
        "--",
    ];
    let mut words: Vec<std::ffi::OsString> = words.map(Into::into).to_vec();
    words.push(binary()?.into());
    let args = "preflight --no-discovery --etcd 127.0.0.1:2379 -o json --rtt-source";
    words.extend(args.split(' ').chain([source]).map(Into::into));
    Running::start(&namespace, Path::new("setpriv"), words)?.wait()
}

#[test]
fn a_source_that_cannot_be_had_is_refused_in_a_sentence() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "setpriv"])? else {
        return Ok(());
    };
    let without_perfmon = "-all,+bpf,+net_admin";
    let run = preflight(without_perfmon, "reconstructed")?;
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run:?}");
    assert_eq!(run.stderr.trim_end().lines().count(), 1, "{}", run.stderr);
    for part in ["reconstructed", "CAP_PERFMON is missing", "--rtt-source"] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
    for source in ["smoothed", "raw", "auto"] {
        let run = preflight(without_perfmon, source)?;
        assert_eq!(run.code, Some(3), "the port is dead: {run:?}");
        let expected = if source == "auto" { "raw" } else { source };
        assert_eq!(run.report()?.text("/observer/rtt_source"), expected);
    }
    Ok(())
}

#[test]
fn smoothed_samples_are_marked_as_such() -> Result<()> {
    let Some(_turn) = take_turn(&[])? else {
        return Ok(());
    };
    Namespace::create()?.enter(|| {
        let mut watchers = [
            Follower::attach(RttSource::Raw)?,
            Follower::attach(RttSource::Smoothed)?,
        ];
        let address = SocketAddr::from(([127, 0, 0, 1], PORT));
        let listener = TcpListener::bind(address)?;
        thread::scope(|scope| {
            let server = scope.spawn(|| serve(&listener));
            ping_pong(address, 100, &mut watchers)?;
            server
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        let [raw, smoothed] = &watchers;
        assert_eq!(
            smoothed.watcher.observer.rtt_source(),
            Some(RttSource::Smoothed)
        );
        // The kernel's moving average of the samples before it, of weight 1/8. Its fraction is not known at first.
        let mut average = None;
        for (number, sample) in &raw.samples {
            let said = *smoothed
                .samples
                .get(number)
                .context("a sample is missing")?;
            let before = average.unwrap_or(said * 8);
            let off = said.abs_diff(before >> 3);
            assert!(off <= 1, "sample {number}: {said} and {}", before >> 3);
            average = Some(before + sample - (before >> 3));
        }
        Ok(())
    })?
}
