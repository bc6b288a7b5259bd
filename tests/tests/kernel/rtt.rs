//! Handshake and segment RTT of ordinary connections, held against a capture.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use joinprobe_lab::capture::{Capture, Recording, SentSegment, Side};
use joinprobe_lab::link::DEVICE;
use joinprobe_lab::{Impairment, Lab, take_turn};
use probe_common::endpoint::Role;
use probe_user::bpf::{Observer, ObserverConfig, RttSource};
use probe_user::histogram::Distribution;

use super::tell;

const PORT: u16 = 2379;
const CONNECTIONS: usize = 20;
/// On one more connection, each sent after the answer to the one before.
const MESSAGES: usize = 100;

/// What tells a wrong measure (a second round trip, the server's time) from the delays of an emulated machine, which are
/// a hundred times those of a real one; microseconds.
const FAR_OFF: u64 = 5000;

/// Reported values beside those on the wire, both in ascending order and in microseconds.
struct Compared {
    pairs: Vec<(u64, u64)>,
}

impl Compared {
    fn new(reported: &Distribution, mut wire: Vec<u64>) -> Result<Self> {
        wire.sort_unstable();
        let mut values = Vec::new();
        for step in reported.iter_recorded() {
            let value = reported.median_equivalent(step.value_iterated_to());
            values.extend((0..step.count_since_last_iteration()).map(|_| value));
        }
        ensure!(
            values.len() == wire.len(),
            "{} samples, {} on the wire",
            values.len(),
            wire.len()
        );
        Ok(Self {
            pairs: values.into_iter().zip(wire).collect(),
        })
    }

    /// The median and the largest difference; a bucket rounds by up to 0.4 %.
    fn errors(&self) -> (u64, u64) {
        let off = |&(value, wire): &(u64, u64)| value.abs_diff(wire);
        let mut errors: Vec<u64> = self.pairs.iter().map(off).collect();
        errors.sort_unstable();
        let largest = errors.last().copied().unwrap_or(0);
        (errors.get(errors.len() / 2).copied().unwrap_or(0), largest)
    }
}

#[test]
fn rtts_agree_with_the_wire() -> Result<()> {
    let Some(_turn) = take_turn(&["tcpdump"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(0).spare_nodes(1).start()?;
    let server = &lab.spare_nodes[0];
    // Jitter makes a smoothed sample differ from a raw one.
    let shape = Impairment::half_of_rtt(Duration::from_millis(10));
    lab.shape(shape.with_jitter(Duration::from_millis(1)));
    let address = server.at(PORT);
    let listener = server.namespace.enter(|| TcpListener::bind(address))??;
    let (source, handshake, segment, recording) = lab.joiner.namespace.enter(|| {
        let observer = Observer::attach(&ObserverConfig {
            ports: vec![(PORT, Role::EtcdClient)],
            ..ObserverConfig::default()
        })?;
        for limitation in observer.limitations() {
            println!("limitation: {limitation}");
        }
        let capture = Capture::start(&lab.joiner.namespace, DEVICE)?;
        thread::scope(|scope| {
            let answers = scope.spawn(|| answer(&listener));
            converse(address)?;
            answers
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        let recording = capture.stop()?;
        let endpoints = observer.endpoints()?;
        let row = endpoints
            .iter()
            .find(|(endpoint, _)| endpoint.remote == Some(address));
        let distributions = row.context("the server is not observed")?.1.distributions();
        let source = observer.rtt_source().context("no sample")?;
        anyhow::Ok((
            source,
            distributions.handshake,
            distributions.segment,
            recording,
        ))
    })??;
    tell("source", format!("{source:?}").to_lowercase());
    let (median, largest) = Compared::new(&handshake, handshakes(&recording, address)?)?.errors();
    tell("handshake", format!("{median} / {largest} us"));
    assert!(median <= FAR_OFF, "{median} us off");
    let segments = Compared::new(&segment, segments(&recording, address)?)?;
    let (median, largest) = segments.errors();
    tell("segment", format!("{median} / {largest} us"));
    if source != RttSource::Smoothed {
        assert!(median <= FAR_OFF, "{median} us off");
    }
    Ok(())
}

/// Opens connections one after the other; on the last one, messages go back and forth.
fn converse(address: SocketAddr) -> Result<()> {
    for _ in 0..CONNECTIONS {
        drop(TcpStream::connect(address)?);
    }
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    for _ in 0..MESSAGES {
        stream.write_all(b"question")?;
        stream.read_exact(&mut [0; 6])?;
    }
    Ok(())
}

fn answer(listener: &TcpListener) -> Result<()> {
    for _ in 0..CONNECTIONS {
        let mut stream = listener.accept()?.0;
        let _ = stream.read(&mut [0; 1]);
    }
    let mut stream = listener.accept()?.0;
    stream.set_nodelay(true)?;
    while stream.read_exact(&mut [0; 8]).is_ok() {
        stream.write_all(b"answer")?;
    }
    Ok(())
}

fn handshakes(recording: &Recording, server: SocketAddr) -> Result<Vec<u64>> {
    let flows = recording.flows_to(server);
    ensure!(flows.len() == CONNECTIONS + 1, "{} flows", flows.len());
    flows
        .iter()
        .map(|flow| {
            micros(
                flow.handshake_rtt()
                    .context("a handshake without an answer")?,
            )
        })
        .collect()
}

fn segments(recording: &Recording, server: SocketAddr) -> Result<Vec<u64>> {
    let flows = recording.flows_to(server);
    let sent = flows.last().context("no flow")?.sent_by(Side::Client);
    // SYN and FIN are pieces of the sequence too.
    let messages = sent.iter().filter(|piece| piece.length > 1);
    messages.filter_map(SentSegment::rtt).map(micros).collect()
}

fn micros(duration: Duration) -> Result<u64> {
    Ok(u64::try_from(duration.as_nanos())? / 1000)
}
