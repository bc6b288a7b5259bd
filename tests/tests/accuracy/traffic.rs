//! What is sent over the watched connection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use joinprobe_lab::Pair;
use joinprobe_lab::pair::{ECHO_PORT, SINK_PORT};
use joinprobe_lab::programs::command;
use probe_common::endpoint::Role;
use probe_user::bpf::{socket_cookie, unsent_and_unacked};
use rustix::net::{AddressFamily, SocketType};

use crate::samples::Watcher;
use crate::scenario::{Scenario, Traffic};

/// Longer than any peer delays an acknowledgement.
const BETWEEN_MESSAGES: Duration = Duration::from_millis(60);
/// One write of a bulk transfer. Not larger: the link has to carry it.
const BLOCK: usize = 16 * 1024;
/// How long the last bytes may take to be acknowledged.
const PATIENCE: Duration = Duration::from_mins(1);

/// The watched connection: connected, and known to both watchers.
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
}

impl Connection {
    /// Connects from inside the client's namespace.
    pub(crate) fn open(pair: &Pair, traffic: Traffic, watchers: [&Watcher; 2]) -> Result<Self> {
        let socket: OwnedFd = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
        let cookie = socket_cookie(socket.as_fd())?;
        for watcher in watchers {
            watcher
                .probes
                .mark(cookie, watcher.slot, Role::EtcdClient)?;
        }
        let port = match traffic {
            Traffic::Requests => ECHO_PORT,
            Traffic::OneWay | Traffic::Bulk => SINK_PORT,
        };
        let server = SocketAddr::new(pair.v4, port);
        rustix::net::connect(&socket, &server)?;
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        let client = stream.local_addr()?;
        Ok(Self {
            stream,
            client,
            server,
        })
    }

    /// Sends for as long as the scenario says and waits until all of it is acknowledged.
    pub(crate) fn run(&mut self, scenario: &Scenario) -> Result<()> {
        let start = Instant::now();
        let message = [7; 200];
        let block = vec![7; BLOCK];
        while start.elapsed() < scenario.length {
            match scenario.traffic {
                Traffic::Requests => {
                    self.stream.write_all(&message)?;
                    self.stream.read_exact(&mut [0; 200])?;
                }
                Traffic::OneWay => {
                    self.stream.write_all(&message)?;
                    self.acknowledged()?;
                    std::thread::sleep(BETWEEN_MESSAGES);
                }
                Traffic::Bulk => self.stream.write_all(&block)?,
            }
        }
        self.acknowledged()
    }

    fn acknowledged(&self) -> Result<()> {
        let start = Instant::now();
        while unsent_and_unacked(self.stream.as_fd())? > 0 {
            ensure!(start.elapsed() < PATIENCE, "not acknowledged");
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Segments sent again so far, by the kernel's own account of this socket (`TCP_INFO`, as `ss` shows it).
    pub(crate) fn retransmits(&self, pair: &Pair) -> Result<u64> {
        let output = pair.client.enter(|| {
            command("ss")
                .args(["-tinHO", "src"])
                .arg(self.client.to_string())
                .output()
        })??;
        let text = String::from_utf8(output.stdout)?;
        ensure!(
            text.contains("cwnd:"),
            "ss does not know the connection: {text}"
        );
        // `retrans:<now>/<ever>`, absent if there was none.
        let ever = text
            .split_whitespace()
            .find_map(|word| word.strip_prefix("retrans:"))
            .and_then(|both| both.split_once('/'));
        Ok(match ever {
            Some((_, ever)) => ever.parse().context("unreadable output of ss")?,
            None => 0,
        })
    }
}
