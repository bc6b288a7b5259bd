//! Many short connections, each with a slot of its own.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use joinprobe_lab::capture::Recording;
use probe_common::endpoint::Role;
use probe_user::bpf::{Observer, socket_cookie};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::errors::Errors;

/// Between two of them, so that they do not queue behind one another.
const PAUSE: Duration = Duration::from_millis(4);
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection: the client's address, and the slot that counted it.
pub(crate) type Counted = (SocketAddr, u32);

/// Connects `count` times. Must run in the client's namespace.
pub(crate) fn connect(observer: &mut Observer, to: SocketAddr, count: u32) -> Result<Vec<Counted>> {
    let probes = observer.own_probes();
    let mut sockets: Vec<(OwnedFd, u32)> = Vec::new();
    for _ in 0..count {
        let flags = SocketFlags::NONBLOCK;
        let socket =
            rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        let slot = observer.new_slot().context("no slot")?;
        probes.mark(socket_cookie(socket.as_fd())?, slot, Role::EtcdClient)?;
        match rustix::net::connect(&socket, &to) {
            Ok(()) | Err(Errno::INPROGRESS) => sockets.push((socket, slot)),
            Err(error) => return Err(error.into()),
        }
        sleep(PAUSE);
    }
    let start = Instant::now();
    let mut counted = Vec::new();
    for (socket, slot) in sockets {
        while observer.read_slot(slot).counters().established == 0 {
            ensure!(
                start.elapsed() < PATIENCE,
                "a connection is not established"
            );
            sleep(PAUSE);
        }
        counted.push((TcpStream::from(socket).local_addr()?, slot));
    }
    Ok(counted)
}

/// Holds what was counted against the capture: a value for each connection whose SYN was sent once, and none for others.
pub(crate) fn compare(
    observer: &Observer,
    counted: &[Counted],
    recording: &Recording,
) -> Result<Errors> {
    let flows = recording.flows();
    let mut errors = Errors::default();
    for (client, slot) in counted {
        let flow = flows
            .iter()
            .find(|flow| flow.client == *client)
            .with_context(|| format!("{client} is not in the capture"))?;
        let counts = observer.read_slot(*slot);
        let handshake = counts.distributions().handshake;
        let sent_again = flow.syns() as u64 - 1;
        assert_eq!(counts.counters().syn_retransmits, sent_again, "{client}");
        match flow.handshake_rtt() {
            Some(truth) => {
                assert_eq!(handshake.len(), 1, "{client}");
                errors.push(
                    micros(handshake.value_at_quantile(0.5)),
                    truth.as_secs_f64() * 1e6,
                );
            }
            // The SYN was sent again before it was answered.
            None => assert_eq!(handshake.len(), 0, "{client}"),
        }
    }
    Ok(errors)
}

#[allow(
    clippy::cast_precision_loss,
    reason = "microseconds of a test are far below 2^52"
)]
pub(crate) fn micros(value: u64) -> f64 {
    value as f64
}
