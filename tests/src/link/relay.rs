//! The thread that carries packets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tun_rs::SyncDevice;

use super::NodeId;
use super::settings::Settings;
use crate::programs::command;

/// How long before a departure the relay stops sleeping and polls instead: waking up takes about this long.
const WAKE_EARLY: Duration = Duration::from_micros(80);
/// Packets taken from one device before departures are looked at again.
const BURST: usize = 64;
/// Longer than any MTU here.
const BUFFER: usize = 65_536;

/// Everything the thread works on.
pub(super) struct Relay<'a> {
    pub(super) devices: Vec<SyncDevice>,
    pub(super) settings: &'a Mutex<Settings>,
    pub(super) stop: &'a AtomicBool,
    pub(super) wake: &'a OwnedFd,
}

/// A packet under way. Ordered by departure, then by arrival.
type Pending = Reverse<(Instant, u64, NodeId, Vec<u8>)>;

impl Relay<'_> {
    /// Carries packets until told to stop. Returns the reason when it cannot go on.
    pub(super) fn run(&self) -> Result<(), Errno> {
        prefer_this_thread();
        let mut pending: BinaryHeap<Pending> = BinaryHeap::new();
        let mut arrivals = 0_u64;
        let mut buffer = vec![0; BUFFER];
        while !self.stop.load(Ordering::Relaxed) {
            self.send_due(&mut pending);
            let ready = self.wait(pending.peek().map(|Reverse((at, ..))| *at))?;
            for node in ready {
                self.receive(NodeId(node), &mut buffer, &mut arrivals, &mut pending);
            }
        }
        Ok(())
    }

    fn wait(&self, departure: Option<Instant>) -> Result<Vec<usize>, Errno> {
        let timeout = departure.map(|at| {
            let left = at
                .saturating_duration_since(Instant::now())
                .saturating_sub(WAKE_EARLY);
            Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            }
        });
        let mut fds: Vec<PollFd<'_>> = self
            .devices
            .iter()
            .map(|device| PollFd::from_borrowed_fd(device.as_fd(), PollFlags::IN))
            .collect();
        fds.push(PollFd::new(self.wake, PollFlags::IN));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        let ready =
            |(node, fd): (usize, &PollFd<'_>)| fd.revents().contains(PollFlags::IN).then_some(node);
        Ok(fds
            .iter()
            .take(self.devices.len())
            .enumerate()
            .filter_map(ready)
            .collect())
    }

    fn receive(
        &self,
        from: NodeId,
        buffer: &mut [u8],
        arrivals: &mut u64,
        pending: &mut BinaryHeap<Pending>,
    ) {
        let Some(device) = self.devices.get(from.0) else {
            return;
        };
        for _ in 0..BURST {
            let Some(packet) = device
                .recv(buffer)
                .ok()
                .and_then(|length| buffer.get(..length))
            else {
                return;
            };
            let now = Instant::now();
            let mut settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((to, at)) = settings.carry(from, packet, now) {
                *arrivals += 1;
                pending.push(Reverse((at, *arrivals, to, packet.to_vec())));
            }
        }
    }

    fn send_due(&self, pending: &mut BinaryHeap<Pending>) {
        while let Some(Reverse((at, ..))) = pending.peek() {
            let now = Instant::now();
            if *at > now {
                return;
            }
            let late = now - *at;
            let Some(Reverse((_, _, to, packet))) = pending.pop() else {
                return;
            };
            let sent = self
                .devices
                .get(to.0)
                .is_some_and(|device| device.send(&packet).is_ok());
            let mut settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
            if sent {
                settings.stats.count_departure(late);
            } else {
                settings.stats.refused += 1;
            }
        }
    }
}

/// Asks for exact wake-ups and to run before ordinary work. Where real-time priority is refused, the link is only less
/// exact, and [`super::LinkStats`] shows by how much.
fn prefer_this_thread() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
    let _ = command("chrt")
        .args(["--fifo", "--pid", "20", &thread])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}
