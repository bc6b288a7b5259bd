//! Ten thousand connections from two thousand addresses, all at work at once.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use joinprobe_lab::Namespace;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::Bench;
use super::figure::Figure;
use super::measured::{self, Measured};

const ADDRESSES: u32 = 2_000;
const CONNECTIONS: u32 = 10_000;
/// Round trips of each connection.
const ROUND_TRIPS: u32 = 50;
const PORT: u16 = 2379;
/// What the server's process says once it listens.
const READY: &str = "serving";
/// Connections that are opened at a time: fewer than a listener's queue holds.
const AT_A_TIME: usize = 200;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    raise_file_limit()?;
    let namespace = Namespace::create()?;
    // Every address of a prefix on loopback is the host's own.
    namespace.ip("addr add 10.77.0.1/16 dev lo")?;
    let watch = Measured::watch(&namespace, &bench.joinprobe, &["--interval", "1s"])?;
    let elapsed = load(&namespace)?;
    let memory = watch.status_kib("VmRSS")? / 1024.0;
    let (lines, _) = watch.stop()?;
    let verdict = measured::verdict(&lines)?;
    let count = |side: &str, pointer: &str| -> Result<f64> {
        Ok(f64::from(u32::try_from(measured::sum(
            &verdict, side, pointer,
        ))?))
    };
    let observer = |name: &str| verdict["observer"][name].as_f64().unwrap_or(f64::NAN);
    let round_trips = f64::from(CONNECTIONS * ROUND_TRIPS);
    let client = count("client", "/segment/count")?;
    let server = count("server", "/segment/count")?;
    let wanted = f64::from(CONNECTIONS);
    let established = "/connections/established";
    let put_aside = count("client", "/retransmitted_samples")?;
    let dropped = count("client", "/dropped_samples")?;
    Ok(vec![
        Figure::once(
            "scale: samples per second",
            "1/s",
            (client + server) / elapsed.as_secs_f64(),
        ),
        Figure::once(
            "scale: client connections counted / made",
            "",
            count("client", established)? / wanted,
        )
        .at_least(1.0),
        Figure::once(
            "scale: server connections counted / made",
            "",
            count("server", established)? / wanted,
        )
        .at_least(1.0),
        // A request is answered once, and its answer acknowledged at the latest by the next request.
        Figure::once(
            "scale: client samples / round trips",
            "",
            client / round_trips,
        )
        .at_least(1.0),
        // Those that the load sent again may be among them, and so may good ones that look like it.
        Figure::once(
            "scale: client samples put aside as retransmissions'",
            "",
            put_aside,
        ),
        Figure::once(
            "scale: round trips without a client sample, counted or put aside",
            "",
            round_trips - client - put_aside - dropped,
        )
        .at_most(0.0),
        Figure::once(
            "scale: server samples / round trips",
            "",
            server / f64::from(CONNECTIONS * (ROUND_TRIPS - 1)),
        )
        .at_least(1.0),
        Figure::once(
            "scale: samples in flows without room",
            "",
            observer("flows_untracked"),
        )
        .at_most(0.0),
        Figure::once(
            "scale: connections beyond the slots, counted together",
            "",
            observer("slots_exhausted"),
        ),
        Figure::once("scale: events lost", "", observer("events_lost")),
        Figure::once(
            "scale: events left out by the rate limit",
            "",
            observer("events_suppressed"),
        ),
        Figure::once("scale: VmRSS", "MiB", memory).at_most(20.0),
    ])
}

/// Runs both ends; returns how long the round trips took. The server is a process of its own: one process may not be
/// allowed to hold both ends of so many connections.
fn load(namespace: &Namespace) -> Result<Duration> {
    let own = std::env::current_exe()?;
    let server = Measured::start(namespace, &own, &["bench-server"], READY)?;
    let elapsed = namespace.enter(|| runtime()?.block_on(ask()))??;
    drop(server);
    Ok(elapsed)
}

fn raise_file_limit() -> Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    Ok(setrlimit(Resource::Nofile, limit)?)
}

/// The server's process: answers until it is killed.
#[allow(clippy::print_stderr, reason = "its parent waits for this line")]
pub(crate) fn serve_forever() -> Result<ExitCode> {
    raise_file_limit()?;
    runtime()?.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).await?;
        eprintln!("{READY}");
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(answer(stream));
        }
    })
}

async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut message = [0; 32];
    loop {
        stream.read_exact(&mut message).await?;
        stream.write_all(&message).await?;
    }
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?)
}

async fn ask() -> Result<Duration> {
    let mut streams = Vec::new();
    let numbers: Vec<u32> = (0..CONNECTIONS).collect();
    for batch in numbers.chunks(AT_A_TIME) {
        let mut connects = JoinSet::new();
        for number in batch {
            let address =
                Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 77, 1, 0)) + number % ADDRESSES);
            connects.spawn(TcpStream::connect(SocketAddr::from((address, PORT))));
        }
        while let Some(stream) = connects.join_next().await {
            streams.push(stream??);
        }
    }
    let start = Instant::now();
    let mut clients = JoinSet::new();
    for mut stream in streams {
        clients.spawn(async move {
            stream.set_nodelay(true)?;
            let mut message = [1; 32];
            for _ in 0..ROUND_TRIPS {
                stream.write_all(&message).await?;
                stream.read_exact(&mut message).await?;
            }
            std::io::Result::Ok(stream)
        });
    }
    // Held open together until the last is done.
    let mut open = Vec::new();
    while let Some(stream) = clients.join_next().await {
        open.push(stream??);
    }
    Ok(start.elapsed())
}
