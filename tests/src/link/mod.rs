//! A link between nodes that delays, loses and holds back packets as told.
//!
//! Each node's end is a TUN device in its namespace; one thread here reads every device, finds the node that a packet
//! is for by its destination address, and hands it over when its time has come. The development kernel has no netem,
//! and this can do things netem cannot: lose exactly the second SYN of each connection.

mod drop_rule;
mod impairment;
mod relay;
mod settings;
mod stats;

use std::collections::HashMap;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};
use rustix::event::{EventfdFlags, eventfd};
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

pub use drop_rule::DropRule;
pub use impairment::{Impairment, Rate, Spike};
pub use stats::LinkStats;

use self::drop_rule::ActiveRule;
use self::relay::Relay;
use self::settings::Settings;
use crate::netns::Namespace;

/// The name of the link's device in every node.
pub const DEVICE: &str = "lab0";

/// A node's place on the link: its index in the list the link was made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub usize);

/// One node's end of the link.
#[derive(Debug)]
pub struct End<'a> {
    /// Where the device is made.
    pub namespace: &'a Namespace,
    /// Its addresses, each with its prefix length: what is reached over the link.
    pub addresses: Vec<(IpAddr, u8)>,
}

/// A running link. Dropping it stops it and removes its devices.
#[derive(Debug)]
pub struct Link {
    settings: Arc<Mutex<Settings>>,
    stop: Arc<AtomicBool>,
    wake: Arc<OwnedFd>,
    relay: Option<JoinHandle<()>>,
}

impl Link {
    /// Makes a device in every node and starts carrying packets between them, at first without delay.
    /// The same `seed` makes the same random choices for the same packets.
    ///
    /// # Errors
    /// When a device cannot be made (no `/dev/net/tun`, not root) or addresses are refused.
    pub fn start(ends: &[End<'_>], seed: u64) -> Result<Self> {
        let mut devices = Vec::new();
        let mut routes = HashMap::new();
        for (node, end) in ends.iter().enumerate() {
            devices.push(make_device(end)?);
            routes.extend(
                end.addresses
                    .iter()
                    .map(|(address, _)| (*address, NodeId(node))),
            );
        }
        let settings = Arc::new(Mutex::new(Settings::new(routes, seed)));
        let stop = Arc::new(AtomicBool::new(false));
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).context("cannot make an eventfd")?);
        let relay = {
            let (settings, stop, wake) =
                (Arc::clone(&settings), Arc::clone(&stop), Arc::clone(&wake));
            thread::Builder::new()
                .name("lab-link".to_owned())
                .spawn(move || {
                    let relay = Relay {
                        devices,
                        settings: &settings,
                        stop: &stop,
                        wake: &wake,
                    };
                    // A link that stops carrying shows as timeouts in every test that uses it.
                    let _ = relay.run();
                })?
        };
        Ok(Self {
            settings,
            stop,
            wake,
            relay: Some(relay),
        })
    }

    /// A link between two namespaces: `10.9.0.2` and `fd00:9::2` are the first one's addresses, `10.9.0.1` and `fd00:9::1` the
    /// second one's.
    ///
    /// # Errors
    /// As [`Link::start`].
    pub fn between(first: &Namespace, second: &Namespace, seed: u64) -> Result<Self> {
        let end = |namespace, host: u8| {
            anyhow::Ok(End {
                namespace,
                addresses: vec![
                    (format!("10.9.0.{host}").parse()?, 24),
                    (format!("fd00:9::{host}").parse()?, 64),
                ],
            })
        };
        Self::start(&[end(first, 2)?, end(second, 1)?], seed)
    }

    /// Sets what happens to packets from one node to another, from the next packet on.
    pub fn set(&self, from: NodeId, to: NodeId, impairment: Impairment) {
        self.settings()
            .directions
            .entry((from, to))
            .or_default()
            .impairment = impairment;
    }

    /// Sets both directions between two nodes.
    pub fn set_both(&self, a: NodeId, b: NodeId, impairment: Impairment) {
        self.set(a, b, impairment);
        self.set(b, a, impairment);
    }

    /// Adds a rule that drops chosen segments; its counting begins now.
    pub fn drop_segments(&self, rule: DropRule) {
        self.settings().rules.push(ActiveRule::new(rule));
    }

    /// Removes all such rules.
    pub fn clear_rules(&self) {
        self.settings().rules.clear();
    }

    /// Drops everything to this address from now on, as if its host were off; or brings it back.
    pub fn set_dead(&self, address: IpAddr, dead: bool) {
        let mut settings = self.settings();
        if dead {
            settings.dead.insert(address);
        } else {
            settings.dead.remove(&address);
        }
    }

    /// Carries packets for a further address to a node, for example a load balancer's. The node must have the address.
    pub fn route(&self, address: IpAddr, node: NodeId) {
        self.settings().routes.insert(address, node);
    }

    /// What it did so far.
    #[must_use]
    pub fn stats(&self) -> LinkStats {
        self.settings().stats
    }

    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
        if let Some(relay) = self.relay.take() {
            let _ = relay.join();
        }
    }
}

fn make_device(end: &End<'_>) -> Result<SyncDevice> {
    let make = || {
        DeviceBuilder::new()
            .name(DEVICE)
            .layer(Layer::L3)
            .enable(false)
            .build_sync()
    };
    let device = end
        .namespace
        .enter(make)?
        .context("cannot make a TUN device (is /dev/net/tun there?)")?;
    device
        .set_nonblocking(true)
        .context("cannot make the TUN device non-blocking")?;
    for (address, prefix) in &end.addresses {
        // Without nodad an IPv6 address is unusable for its first second.
        let nodad = if address.is_ipv6() { "nodad" } else { "" };
        end.namespace
            .ip(&format!("addr add {address}/{prefix} dev {DEVICE} {nodad}"))?;
    }
    end.namespace.ip(&format!("link set {DEVICE} up"))?;
    Ok(device)
}
