//! Traffic of our own to measure: request and response, and connections one after the other.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use joinprobe_lab::Namespace;

/// Round trips before those that are measured.
pub(super) const WARM_UP: usize = 2_000;

/// Bytes of a request, and of its answer.
pub(super) const MESSAGE: usize = 64;

/// A server on loopback.
pub(super) struct Server {
    /// Where it listens.
    pub(super) address: SocketAddr,
    stop: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    /// Answers every message with itself, in a thread for each connection.
    pub(super) fn echo(namespace: &Namespace, port: u16) -> Result<Self> {
        Self::start(namespace, port, |stream| {
            thread::spawn(move || answer(stream));
        })
    }

    /// Closes every connection at once.
    pub(super) fn closing(namespace: &Namespace, port: u16) -> Result<Self> {
        Self::start(namespace, port, drop)
    }

    fn start(namespace: &Namespace, port: u16, handle: fn(TcpStream)) -> Result<Self> {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let listener = namespace.enter(|| TcpListener::bind(address))??;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let acceptor = thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                handle(stream);
            }
        });
        Ok(Self {
            address,
            stop,
            acceptor: Some(acceptor),
        })
    }

    /// Ends the server; its namespace is needed to reach it once more.
    pub(super) fn stop(mut self, namespace: &Namespace) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = namespace.enter(|| TcpStream::connect(self.address));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn answer(mut stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut message = [0; MESSAGE];
    while stream.read_exact(&mut message).is_ok() {
        if stream.write_all(&message).is_err() {
            return;
        }
    }
}

/// Makes `round_trips` round trips over each of `connections` connections at once.
pub(super) fn request_response(
    namespace: &Namespace,
    server: SocketAddr,
    connections: usize,
    round_trips: usize,
) -> Result<()> {
    let streams = namespace.enter(|| {
        (0..connections)
            .map(|_| TcpStream::connect(server))
            .collect::<std::io::Result<Vec<_>>>()
    })??;
    let clients: Vec<_> = streams
        .into_iter()
        .map(|stream| thread::spawn(move || client(stream, round_trips)))
        .collect();
    for client in clients {
        client.join().map_err(|_| anyhow!("a client died"))??;
    }
    Ok(())
}

fn client(mut stream: TcpStream, round_trips: usize) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut message = [7; MESSAGE];
    for _ in 0..round_trips {
        stream.write_all(&message)?;
        stream.read_exact(&mut message)?;
    }
    Ok(())
}

/// Opens this many connections to a server that closes them, one after the other; returns how many a second.
pub(super) fn connect_close(
    namespace: &Namespace,
    server: SocketAddr,
    connections: usize,
) -> Result<f64> {
    namespace.enter(|| -> Result<f64> {
        let mut rest = Vec::new();
        let start = Instant::now();
        for _ in 0..connections {
            let mut stream = TcpStream::connect(server)?;
            // Waiting for the end keeps the server's queue short.
            stream.read_to_end(&mut rest)?;
        }
        Ok(per_second(connections, start.elapsed()))
    })?
}

#[allow(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
fn per_second(count: usize, elapsed: Duration) -> f64 {
    count as f64 / elapsed.as_secs_f64()
}
