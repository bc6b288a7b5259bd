//! A capture whose timestamps the kernel took: the truth that joinprobe's values are held against.
//!
//! `tcpdump` runs at the observer's end of the link. An outgoing packet is stamped just before the device takes it, an
//! incoming one when the device hands it over, both by the same clock; so the times include nothing of the relay's own
//! scheduling that the observer's kernel would not see as well.

mod expected;
mod flow;
mod recording;
mod sent;

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::net::netdevice::name_to_index;
use rustix::net::sockopt::set_ip_multicast_if_with_ifindex;
use rustix::process::{Pid, Signal, kill_process};

pub use expected::Acknowledgement;
pub use flow::{Flow, Side};
pub use recording::{Packet, Recording};
pub use sent::SentSegment;

use crate::netns::Namespace;
use crate::programs::command;

/// Headers and options fit in this; payload is not needed.
const SNAPLEN: &str = "128";
const PATIENCE: Duration = Duration::from_secs(10);
/// Discard: nobody listens, and the filter lets it through.
const MARK_PORT: u16 = 9;
const MARK_GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 255, 9);

/// A running capture of the TCP packets on one device. Dropping it ends it.
#[derive(Debug)]
pub struct Capture<'a> {
    namespace: &'a Namespace,
    device: String,
    tcpdump: Child,
    bytes: Arc<Mutex<Vec<u8>>>,
    messages: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
    marks: u32,
}

impl<'a> Capture<'a> {
    /// Starts capturing on `device` (`any` for all of the namespace) and returns once packets are known to arrive.
    ///
    /// # Errors
    /// When tcpdump is missing, may not capture, or shows no packet within ten seconds.
    pub fn start(namespace: &'a Namespace, device: &str) -> Result<Self> {
        let mut tcpdump = namespace.spawn(
            command("tcpdump")
                .args([
                    "-i",
                    device,
                    "--time-stamp-precision=nano",
                    "--immediate-mode",
                    "-n",
                    "-U",
                ])
                .args(["-s", SNAPLEN, "-B", "16384", "-w", "-"])
                .arg(format!("tcp or udp port {MARK_PORT}"))
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped()),
        )?;
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let messages = Arc::new(Mutex::new(String::new()));
        let mut readers = Vec::new();
        if let Some(stdout) = tcpdump.stdout.take() {
            let bytes = Arc::clone(&bytes);
            readers.push(thread::spawn(move || collect_bytes(stdout, &bytes)));
        }
        if let Some(stderr) = tcpdump.stderr.take() {
            let messages = Arc::clone(&messages);
            readers.push(thread::spawn(move || {
                collect_lines(BufReader::new(stderr), &messages);
            }));
        }
        let mut capture = Self {
            namespace,
            device: device.to_owned(),
            tcpdump,
            bytes,
            messages,
            readers,
            marks: 0,
        };
        capture.wait_until_listening()?;
        capture.mark()?;
        Ok(capture)
    }

    /// Ends the capture and reads it. Every packet stamped before this call is in it.
    ///
    /// # Errors
    /// When packets were lost on the way to tcpdump, or its output cannot be read.
    pub fn stop(mut self) -> Result<Recording> {
        self.mark()?;
        self.end();
        let messages = self
            .messages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        ensure!(
            messages.contains("\n0 packets dropped by kernel"),
            "the capture is not complete: {}",
            messages.trim().replace('\n', "; ")
        );
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        Recording::parse(&bytes)
    }

    fn wait_until_listening(&mut self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let said = self
                .messages
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            if said.contains("listening on") {
                return Ok(());
            }
            if let Some(status) = self.tcpdump.try_wait()? {
                bail!("tcpdump ended ({status}): {}", said.trim());
            }
            ensure!(
                Instant::now() < deadline,
                "tcpdump does not listen after {PATIENCE:?}: {}",
                said.trim()
            );
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Sends a packet of its own through the device until the capture shows it.
    fn mark(&mut self) -> Result<()> {
        self.marks += 1;
        let text = format!("joinprobe lab mark {:>4}", self.marks);
        let device = if self.device == "any" {
            "lo"
        } else {
            &self.device
        };
        let socket = self.namespace.enter(|| marker_socket(device))??;
        let deadline = Instant::now() + PATIENCE;
        let mut searched = 0;
        while Instant::now() < deadline {
            socket
                .send_to(text.as_bytes(), (MARK_GROUP, MARK_PORT))
                .context("cannot send a marker packet")?;
            for _ in 0..25 {
                thread::sleep(Duration::from_millis(2));
                let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
                if bytes
                    .get(searched..)
                    .is_some_and(|new| new.windows(text.len()).any(|w| w == text.as_bytes()))
                {
                    return Ok(());
                }
                searched = bytes.len().saturating_sub(text.len());
            }
        }
        bail!("packets sent on {device} do not show in the capture")
    }

    fn end(&mut self) {
        if let Ok(pid) = i32::try_from(self.tcpdump.id())
            && let Some(pid) = Pid::from_raw(pid)
            && matches!(self.tcpdump.try_wait(), Ok(None))
        {
            let _ = kill_process(pid, Signal::INT);
        }
        let _ = self.tcpdump.wait();
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

/// A socket whose multicast packets leave through this device, whatever the routes say.
fn marker_socket(device: &str) -> Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).context("cannot make a socket")?;
    let index =
        name_to_index(&socket, device).with_context(|| format!("there is no device {device}"))?;
    set_ip_multicast_if_with_ifindex(&socket, &MARK_GROUP, &Ipv4Addr::UNSPECIFIED, index)
        .with_context(|| format!("cannot send markers through {device}"))?;
    Ok(socket)
}

fn collect_bytes(mut from: impl Read, into: &Mutex<Vec<u8>>) {
    let mut chunk = [0; 16_384];
    while let Ok(length @ 1..) = from.read(&mut chunk) {
        into.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(chunk.iter().take(length));
    }
}

fn collect_lines(from: impl BufRead, into: &Mutex<String>) {
    for line in from.lines().map_while(Result::ok) {
        let mut text = into.lock().unwrap_or_else(PoisonError::into_inner);
        text.push_str(&line);
        text.push('\n');
    }
}
