//! Which handshakes give a sample, on both sides: those whose SYN and SYN-ACK were sent once and are measured in
//! microseconds.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use joinprobe_lab::capture::{Flow, Recording};
use joinprobe_lab::link::DropRule;
use joinprobe_lab::{Impairment, Pair, take_turn};
use probe_common::endpoint::{Role, Side};
use probe_user::bpf::{Observer, ObserverConfig};
use probe_user::measure::SlotCounts;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};

const RTT: Duration = Duration::from_millis(10);
/// `MSG_FASTOPEN` (include/linux/socket.h).
const FASTOPEN: SendFlags = SendFlags::from_bits_retain(0x2000_0000);

/// An observer on each side.
struct Watched {
    // Before the namespaces.
    client: Observer,
    server: Observer,
    pair: Pair,
}

impl Watched {
    fn start(ports: &[u16]) -> Result<Self> {
        let pair = Pair::start()?;
        let attach = || {
            Observer::attach(&ObserverConfig {
                ports: ports.iter().map(|port| (*port, Role::EtcdClient)).collect(),
                ..ObserverConfig::default()
            })
        };
        let watched = Self {
            client: pair.client.enter(attach)??,
            server: pair.server.enter(attach)??,
            pair,
        };
        watched.pair.shape(Impairment::half_of_rtt(RTT));
        Ok(watched)
    }

    /// Accepts and drops `count` connections, in the background.
    fn serve(&self, port: u16, count: usize) -> Result<thread::JoinHandle<()>> {
        let listener = self
            .pair
            .server
            .enter(|| TcpListener::bind(("0.0.0.0", port)))??;
        Ok(thread::spawn(move || {
            let accepted: Vec<_> = listener.incoming().take(count).collect();
            // The clients are to close first.
            sleep(Duration::from_millis(100));
            drop(accepted);
        }))
    }

    fn to(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.pair.v4, port)
    }

    fn client_counts(&self, port: u16) -> Result<SlotCounts> {
        let remote = self.to(port);
        self.client
            .endpoints()?
            .into_iter()
            .find(|(endpoint, _)| endpoint.remote == Some(remote))
            .map(|(_, counts)| counts)
            .with_context(|| format!("{remote} was not seen"))
    }

    fn server_counts(&self) -> Result<SlotCounts> {
        self.server
            .endpoints()?
            .into_iter()
            .find(|(endpoint, _)| endpoint.side == Side::Server)
            .map(|(_, counts)| counts)
            .context("the server was not seen")
    }
}

fn begin_connect(to: SocketAddr) -> Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// SYNs per server port.
fn syns(recording: &Recording) -> BTreeMap<u16, u64> {
    let flow = |flow: &Flow<'_>| (flow.server.port(), flow.syns() as u64);
    recording.flows().iter().map(flow).collect()
}

#[test]
fn lost_syns_are_counted_and_give_no_sample() -> Result<()> {
    // To port 7000 + k, the first k SYNs are lost; to 7010 + k, the first k SYN-ACKs.
    const LOST_SYNS: [u16; 4] = [7000, 7001, 7002, 7003];
    const LOST_SYN_ACKS: [u16; 2] = [7011, 7012];
    let Some(_turn) = take_turn(&["tcpdump"])? else {
        return Ok(());
    };
    let ports: Vec<u16> = LOST_SYNS.into_iter().chain(LOST_SYN_ACKS).collect();
    let watched = Watched::start(&ports)?;
    for (port, k) in LOST_SYNS.into_iter().zip(0_u32..).skip(1) {
        watched
            .pair
            .link
            .drop_segments(DropRule::syn(1..=k).of_port(port));
    }
    for (port, k) in LOST_SYN_ACKS.into_iter().zip(1_u32..) {
        watched
            .pair
            .link
            .drop_segments(DropRule::syn_ack(1..=k).of_port(port));
    }
    let servers = ports
        .iter()
        .map(|port| watched.serve(*port, 1))
        .collect::<Result<Vec<_>>>()?;
    let (recording, sockets) = watched.pair.captured(|| {
        let sockets = watched.pair.client.enter(|| {
            ports
                .iter()
                .map(|port| begin_connect(watched.to(*port)))
                .collect::<Result<Vec<_>>>()
        })??;
        let start = Instant::now();
        for port in &ports {
            while watched.client_counts(*port)?.counters().established == 0 {
                ensure!(start.elapsed() < Duration::from_secs(20), "port {port}");
                sleep(Duration::from_millis(10));
            }
        }
        Ok(sockets)
    })?;
    drop(sockets);
    for server in servers {
        server
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
    let syns = syns(&recording);
    let mut clean = 0;
    for (port, k) in LOST_SYNS.into_iter().zip(0_u64..) {
        let counts = watched.client_counts(port)?;
        assert_eq!(counts.counters().syn_retransmits, k, "{port}");
        assert_eq!(syns[&port], k + 1, "on the wire");
        assert_eq!(counts.distributions().handshake.len(), u64::from(k == 0));
        assert_eq!(counts.counters().retransmits, 0);
        clean += 1;
    }
    for port in LOST_SYN_ACKS {
        let counts = watched.client_counts(port)?;
        // The client cannot know which was lost: its SYN goes again, and its sample with it.
        assert_eq!(counts.counters().syn_retransmits, syns[&port] - 1, "{port}");
        assert!(syns[&port] > 1);
        assert_eq!(counts.distributions().handshake.len(), 0, "{port}");
    }
    let server = watched.server_counts()?;
    assert_eq!(server.counters().established, ports.len() as u64);
    // The server saw one SYN of each of the first kind, and its SYN-ACK was answered.
    let samples = server.distributions().handshake;
    assert!(samples.len() <= clean, "{} samples", samples.len());
    assert!(!samples.is_empty());
    assert!(samples.max() < 100_000, "{} us", samples.max());
    assert!(server.counters().syn_retransmits >= 2);
    Ok(())
}

#[test]
fn cookies_are_no_samples() -> Result<()> {
    const TIMES: u64 = 20;
    let Some(_turn) = take_turn(&[])? else {
        return Ok(());
    };
    for timestamps in ["1", "0"] {
        let watched = Watched::start(&[7000])?;
        let pair = &watched.pair;
        // 2: always.
        pair.server.sysctl("net.ipv4.tcp_syncookies", "2")?;
        pair.server.sysctl("net.ipv4.tcp_timestamps", timestamps)?;
        let server = watched.serve(7000, usize::try_from(TIMES)?)?;
        for _ in 0..TIMES {
            drop(pair.connect(watched.to(7000))?);
        }
        server
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let counts = watched.server_counts()?;
        assert_eq!(counts.counters().established, TIMES);
        assert_eq!(
            counts.distributions().handshake.len(),
            0,
            "the server kept nothing of the SYN"
        );
        let samples = watched.client_counts(7000)?.distributions().handshake;
        assert_eq!(samples.len(), TIMES);
        assert!(samples.min() >= 9_900, "{} us", samples.min());
    }
    Ok(())
}

#[test]
fn fast_open_is_measured_on_both_sides() -> Result<()> {
    const TIMES: u64 = 20;
    let Some(_turn) = take_turn(&["tcpdump"])? else {
        return Ok(());
    };
    let watched = Watched::start(&[7000])?;
    let pair = &watched.pair;
    for namespace in [&pair.client, &pair.server] {
        // Both roles, without cookies, on every listener.
        namespace.sysctl("net.ipv4.tcp_fastopen", &0x607.to_string())?;
    }
    let server = watched.serve(7000, usize::try_from(TIMES)?)?;
    let to = watched.to(7000);
    let (recording, ()) = pair.captured(|| {
        pair.client.enter(|| {
            for _ in 0..TIMES {
                let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
                rustix::net::sendto(&socket, b"early", FASTOPEN, &to)?;
                // Data went with the SYN; only once it is answered may more be sent.
                let mut answered = [PollFd::new(&socket, PollFlags::OUT)];
                let patience = Timespec {
                    tv_sec: 10,
                    tv_nsec: 0,
                };
                ensure!(poll(&mut answered, Some(&patience))? == 1, "no answer");
                drop(TcpStream::from(socket));
            }
            anyhow::Ok(())
        })?
    })?;
    server
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let early = recording
        .packets
        .iter()
        .filter(|packet| packet.segment.is_syn() && packet.segment.payload > 0)
        .count();
    assert_eq!(early as u64, TIMES, "SYNs with data");
    let client = watched.client_counts(7000)?.distributions().handshake;
    let server = watched.server_counts()?;
    println!(
        "client {} of {} to {} us; server {} of {} to {} us",
        client.len(),
        client.min(),
        client.max(),
        server.distributions().handshake.len(),
        server.distributions().handshake.min(),
        server.distributions().handshake.max()
    );
    assert_eq!(client.len(), TIMES);
    assert_eq!(server.counters().established, TIMES);
    let server = server.distributions().handshake;
    // One that happens to be a whole millisecond is left out there.
    assert!(
        server.len() + 1 >= TIMES && server.len() <= TIMES,
        "{}",
        server.len()
    );
    for samples in [client, server] {
        assert!(samples.min() >= 9_900, "{} us", samples.min());
        assert!(samples.value_at_quantile(0.5) < 15_000);
    }
    Ok(())
}
