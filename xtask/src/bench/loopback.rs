//! What watched connections on loopback pay.
//!
//! A machine's mood changes faster than a watch starts and ends, so there are two connections at once, of which one is
//! watched, because it belongs to the cgroup that the watch is attached to. They take turns of a few milliseconds, and
//! the same two threads serve both.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use joinprobe_lab::Namespace;
use joinprobe_lab::bpf::Cgroup;

use super::Bench;
use super::figure::{Figure, median};
use super::load::{MESSAGE, WARM_UP};
use super::measured::{Measured, sum, verdict};

/// Round trips of a turn: some milliseconds.
const ROUND_TRIPS: usize = 200;
/// Turns of each connection in a round.
const TURNS: usize = 250;
/// Neither connection is always first.
const ORDER: [usize; 4] = [PLAIN, WATCHED, WATCHED, PLAIN];
const PLAIN: usize = 0;
const WATCHED: usize = 1;

/// A connection's both ends.
struct Connection {
    client: TcpStream,
    server: TcpStream,
}

/// The times of all round trips of each turn, by connection.
type Turns = [Vec<Vec<Duration>>; 2];

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let namespace = Namespace::create()?;
    let plain = Connection::open(&namespace, 9999)?;
    let cgroup = Cgroup::enter()?;
    let watch = Measured::watch_cgroup(&namespace, &bench.joinprobe, &cgroup)?;
    let connections = [plain, Connection::open(&namespace, 2379)?];
    take_turns(&connections, WARM_UP.div_ceil(ROUND_TRIPS))?;
    let rounds = (0..bench.rounds)
        .map(|_| take_turns(&connections, TURNS))
        .collect::<Result<Vec<_>>>()?;
    let (output, _) = watch.stop()?;
    let samples = sum(&verdict(&output)?, "client", "/segment/count");
    let made = ROUND_TRIPS * TURNS * rounds.len();
    ensure!(
        samples >= u64::try_from(made)?,
        "of {made} round trips {samples} were seen: not the right connection was watched"
    );

    let of = |pick: fn(&Turns, usize) -> f64| -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let all = |which| rounds.iter().map(|round| pick(round, which)).collect();
        let (without, with): (Vec<f64>, Vec<f64>) = (all(PLAIN), all(WATCHED));
        let ratios = with.iter().zip(&without).map(|(a, b)| a / b).collect();
        (without, with, ratios)
    };
    let (without, with, _) = of(rate);
    let ratios = rounds.iter().map(rate_ratio).collect();
    let (p99_without, p99_with, p99_ratios) = of(p99_us);
    let name = |what: &str, how: &str| format!("{what} on loopback, {how}");
    Ok(vec![
        Figure::new(name("round trips", "not watched"), "1/s", without),
        Figure::new(name("round trips", "watched"), "1/s", with),
        Figure::new(name("round trips", "watched / not"), "", ratios).at_least(0.98),
        Figure::new(
            name("p99 of a round trip", "not watched"),
            "us",
            p99_without,
        ),
        Figure::new(name("p99 of a round trip", "watched"), "us", p99_with),
        Figure::new(name("p99 of a round trip", "watched / not"), "", p99_ratios),
    ])
}

impl Connection {
    fn open(namespace: &Namespace, port: u16) -> Result<Self> {
        namespace.enter(|| -> Result<Self> {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
            let client = TcpStream::connect(listener.local_addr()?)?;
            let (server, _) = listener.accept()?;
            client.set_nodelay(true)?;
            server.set_nodelay(true)?;
            Ok(Self { client, server })
        })?
    }
}

/// Lets each connection have `turns` turns.
fn take_turns(connections: &[Connection; 2], turns: usize) -> Result<Turns> {
    let order = || ORDER.into_iter().cycle().take(2 * turns);
    thread::scope(|scope| {
        let server =
            scope.spawn(|| order().try_for_each(|which| answer(&connections[which].server)));
        let mut times: Turns = [Vec::with_capacity(turns), Vec::with_capacity(turns)];
        for which in order() {
            times[which].push(ask(&connections[which].client)?);
        }
        server.join().map_err(|_| anyhow!("the server died"))??;
        Ok(times)
    })
}

fn answer(mut stream: &TcpStream) -> Result<()> {
    let mut message = [0; MESSAGE];
    for _ in 0..ROUND_TRIPS {
        stream.read_exact(&mut message)?;
        stream.write_all(&message)?;
    }
    Ok(())
}

fn ask(mut stream: &TcpStream) -> Result<Vec<Duration>> {
    let mut message = [7; MESSAGE];
    (0..ROUND_TRIPS)
        .map(|_| {
            let start = Instant::now();
            stream.write_all(&message)?;
            stream.read_exact(&mut message)?;
            Ok(start.elapsed())
        })
        .collect::<std::io::Result<_>>()
        .context("the server is gone")
}

fn seconds(turn: &[Duration]) -> f64 {
    turn.iter().sum::<Duration>().as_secs_f64()
}

/// Round trips per second.
#[allow(clippy::cast_precision_loss, reason = "a few hundred")]
fn rate(round: &Turns, which: usize) -> f64 {
    let turns: Vec<f64> = round[which].iter().map(|turn| seconds(turn)).collect();
    ROUND_TRIPS as f64 / median(&turns)
}

/// The watched connection's rate to the other's, turn by turn.
fn rate_ratio(round: &Turns) -> f64 {
    let pairs = round[PLAIN].iter().zip(&round[WATCHED]);
    let ratios: Vec<f64> = pairs
        .map(|(plain, watched)| seconds(plain) / seconds(watched))
        .collect();
    median(&ratios)
}

/// The 99th percentile of a round trip, in microseconds.
fn p99_us(round: &Turns, which: usize) -> f64 {
    let mut times: Vec<Duration> = round[which].concat();
    times.sort_unstable();
    times[times.len() * 99 / 100].as_secs_f64() * 1e6
}
