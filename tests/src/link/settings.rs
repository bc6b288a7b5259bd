//! What the link does, changeable while it runs.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::time::Instant;

use fastrand::Rng;

use super::NodeId;
use super::drop_rule::ActiveRule;
use super::impairment::{Direction, Fate};
use super::stats::LinkStats;
use crate::segment::parse_ip;

/// Shared between the relay and whoever changes it.
#[derive(Debug)]
pub(super) struct Settings {
    /// Which node an address belongs to.
    pub(super) routes: HashMap<IpAddr, NodeId>,
    pub(super) directions: HashMap<(NodeId, NodeId), Direction>,
    pub(super) rules: Vec<ActiveRule>,
    pub(super) dead: HashSet<IpAddr>,
    pub(super) stats: LinkStats,
    rng: Rng,
}

impl Settings {
    pub(super) fn new(routes: HashMap<IpAddr, NodeId>, seed: u64) -> Self {
        Self {
            routes,
            directions: HashMap::new(),
            rules: Vec::new(),
            dead: HashSet::new(),
            stats: LinkStats::default(),
            rng: Rng::with_seed(seed),
        }
    }

    /// Where and when a packet leaves that came from `from` at `now`; `None` when it does not.
    pub(super) fn carry(
        &mut self,
        from: NodeId,
        bytes: &[u8],
        now: Instant,
    ) -> Option<(NodeId, Instant)> {
        let packet = parse_ip(bytes);
        let Some((packet, to)) =
            packet.and_then(|packet| Some((packet, *self.routes.get(&packet.destination)?)))
        else {
            self.stats.unroutable += 1;
            return None;
        };
        if self.dead.contains(&packet.destination) {
            self.stats.dropped_dead += 1;
            return None;
        }
        if let Some(segment) = packet.tcp {
            // Every rule counts every segment, whichever drops it.
            let mut dropped = false;
            for rule in &mut self.rules {
                dropped |= rule.drops(&segment);
            }
            if dropped {
                self.stats.dropped_by_rule += 1;
                return None;
            }
        }
        let direction = self.directions.entry((from, to)).or_default();
        match direction.decide(now, bytes.len(), &mut self.rng) {
            Fate::Deliver(at) => return Some((to, at)),
            Fate::Lost => self.stats.lost += 1,
            Fate::Overflow => self.stats.overflowed += 1,
            Fate::TooLong => self.stats.too_long += 1,
        }
        None
    }
}
