//! The link does what it is told, by the kernel's own clock.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use joinprobe_lab::capture::{Flow, SentSegment, Side};
use joinprobe_lab::link::DropRule;
use joinprobe_lab::pair::ECHO_PORT;
use joinprobe_lab::{Impairment, NodeId, Pair, attempts, on_time, take_turn};

const CLIENT: NodeId = Pair::CLIENT;
const SERVER: NodeId = Pair::SERVER;
const PORT: u16 = ECHO_PORT;

fn v4(pair: &Pair) -> SocketAddr {
    (pair.v4, PORT).into()
}

fn v6(pair: &Pair) -> SocketAddr {
    (pair.v6, PORT).into()
}

fn median(mut values: Vec<Duration>) -> Duration {
    values.sort();
    values[values.len() / 2]
}

#[test]
fn rtt_is_what_was_asked_for() -> Result<()> {
    let Some(_turn) = take_turn(&["tcpdump"])? else {
        return Ok(());
    };
    let pair = Pair::start()?;
    for rtt in [
        Duration::from_micros(200),
        Duration::from_millis(10),
        Duration::from_millis(100),
    ] {
        pair.link
            .set_both(CLIENT, SERVER, Impairment::half_of_rtt(rtt));
        attempts(3, || {
            let (recording, ()) = pair.captured(|| {
                for to in [v4(&pair), v6(&pair)].repeat(10) {
                    drop(pair.connect(to)?);
                }
                Ok(())
            })?;
            let flows = recording.flows();
            assert_eq!(flows.len(), 20);
            let rtts: Vec<Duration> = flows.iter().filter_map(Flow::handshake_rtt).collect();
            let answered = format!("{} SYNs were answered at once", rtts.len());
            on_time(rtts.len() == 20, || answered)?;
            let (least, middle) = (rtts.iter().min().copied().unwrap_or_default(), median(rtts));
            let stats = pair.link.stats();
            println!(
                "asked {rtt:?}: least {least:?}, median {middle:?}, late by {:?} in the mean",
                stats.late_mean()
            );
            assert!(least >= rtt, "{least:?} is faster than {rtt:?}");
            on_time(middle < rtt + Duration::from_millis(1), || {
                format!("{middle:?} for {rtt:?}")
            })
        })?;
    }
    Ok(())
}

#[test]
fn chosen_syns_are_dropped_and_counted() -> Result<()> {
    let Some(_turn) = take_turn(&["tcpdump"])? else {
        return Ok(());
    };
    let pair = Pair::start()?;
    let (recording, ()) = pair.captured(|| {
        pair.link
            .drop_segments(DropRule::syn(1..=1).of_port(PORT).of_server(pair.v4));
        drop(pair.connect(v4(&pair))?);
        drop(pair.connect(v6(&pair))?);
        pair.link.clear_rules();
        pair.link.drop_segments(DropRule::syn_ack(1..=1));
        drop(pair.connect(v6(&pair))?);
        Ok(())
    })?;
    let syns: Vec<usize> = recording.flows().iter().map(Flow::syns).collect();
    assert_eq!(syns[..2], [2, 1]);
    assert!(syns[2] >= 1 && recording.flows()[2].is_established());
    assert_eq!(recording.flows()[0].handshake_rtt(), None);
    assert_eq!(pair.link.stats().dropped_by_rule, 2);
    Ok(())
}

#[test]
fn chosen_data_segments_are_retransmitted() -> Result<()> {
    let Some(_turn) = take_turn(&["tcpdump"])? else {
        return Ok(());
    };
    let pair = Pair::start()?;
    pair.link.set_both(
        CLIENT,
        SERVER,
        Impairment::half_of_rtt(Duration::from_millis(4)),
    );
    attempts(3, || {
        pair.link.clear_rules();
        pair.link.drop_segments(DropRule::data_to(PORT, 3..=3));
        let dropped = pair.link.stats().dropped_by_rule;
        let (recording, ()) = pair.captured(|| {
            let mut stream = pair.connect(v4(&pair))?;
            let mut answer = [0; 1];
            for _ in 0..5 {
                stream.write_all(b"x")?;
                stream.read_exact(&mut answer)?;
            }
            Ok(())
        })?;
        assert_eq!(pair.link.stats().dropped_by_rule, dropped + 1);
        let flows = recording.flows();
        let pieces = flows[0].sent_by(Side::Client);
        let rtts: Vec<Duration> = pieces.iter().filter_map(SentSegment::rtt).collect();
        assert!(
            rtts.iter().all(|rtt| *rtt >= Duration::from_millis(4)),
            "{rtts:?}"
        );
        let copies: Vec<usize> = pieces.iter().map(|piece| piece.sent.len()).collect();
        assert!(copies[3] >= 2, "{copies:?}");
        // SYN, five bytes, and the FIN, which may not have been sent yet. What is acknowledged late is sent again too.
        on_time(copies[..6] == [1, 1, 1, 2, 1, 1], || format!("{copies:?}"))
    })
}

#[test]
fn loss_and_dead_hosts() -> Result<()> {
    let Some(_turn) = take_turn(&["tcpdump"])? else {
        return Ok(());
    };
    let pair = Pair::start()?;
    pair.link
        .set(CLIENT, SERVER, Impairment::default().with_loss(0.1));
    let mut stream = pair.connect(v4(&pair))?;
    let mut answer = [0; 1];
    for _ in 0..100 {
        stream.write_all(b"x")?;
        stream.read_exact(&mut answer)?;
    }
    let stats = pair.link.stats();
    let share = f64::from(u32::try_from(stats.lost)?)
        / f64::from(u32::try_from(stats.lost + stats.carried)?);
    println!("{stats:?}: {share}");
    assert!(
        (0.01..0.2).contains(&share),
        "of both directions, 5 % are to be lost: {share}"
    );

    pair.link.set_dead(pair.v4, true);
    let started = Instant::now();
    let refused = pair
        .client
        .enter(|| TcpStream::connect_timeout(&v4(&pair), Duration::from_millis(300)))?
        .map_err(|error| error.kind());
    assert_eq!(refused.err(), Some(ErrorKind::TimedOut));
    assert!(started.elapsed() >= Duration::from_millis(300));
    pair.link.set_dead(pair.v4, false);
    pair.connect(v4(&pair))?;
    Ok(())
}

#[test]
fn a_bottleneck_limits_bulk_and_loses_nothing_it_should_not() -> Result<()> {
    let Some(_turn) = take_turn(&["tcpdump"])? else {
        return Ok(());
    };
    let pair = Pair::start()?;
    let bulk = |bytes: usize| -> Result<Duration> {
        let mut stream = pair.connect(v4(&pair))?;
        let started = Instant::now();
        let mut sender = stream.try_clone()?;
        let writer = thread::spawn(move || sender.write_all(&vec![7; bytes]));
        let mut received = vec![0; bytes];
        stream.read_exact(&mut received)?;
        assert!(received.iter().all(|byte| *byte == 7));
        writer.join().unwrap()?;
        Ok(started.elapsed())
    };
    let free = bulk(4_000_000)?;
    let rate = Impairment::default().with_rate(20_000_000, Duration::from_millis(50));
    pair.link.set(CLIENT, SERVER, rate);
    let narrow = bulk(1_000_000)?;
    println!(
        "4 MB freely: {free:?}; 1 MB at 20 Mbit/s: {narrow:?}; {:?}",
        pair.link.stats()
    );
    // 8 Mbit at 20 Mbit/s.
    assert!(narrow >= Duration::from_millis(390), "{narrow:?}");
    Ok(())
}

#[test]
fn namespaces_and_devices_are_gone_after_a_panic() -> Result<()> {
    let Some(_turn) = take_turn(&[])? else {
        return Ok(());
    };
    let mut names = Vec::new();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let pair = Pair::start().unwrap();
        names.push(pair.client.path());
        assert!(names[0].exists());
        panic!("on purpose");
    }));
    assert!(outcome.is_err());
    assert!(!names[0].exists());
    Ok(())
}
