//! Dropping chosen segments of each connection, so that a test knows exactly what was lost.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use crate::segment::Segment;

/// Drops the n-th segment of a kind of every connection it applies to. Retransmissions count as further segments of
/// their kind, so `DropRule::syn(1..=2)` loses the first SYN and its first retransmission.
#[derive(Debug, Clone)]
pub struct DropRule {
    kind: Kind,
    nth: RangeInclusive<u32>,
    server: Option<IpAddr>,
    port: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Syn,
    SynAck,
    DataToServer,
    DataToClient,
}

impl DropRule {
    /// SYNs, counted from 1.
    #[must_use]
    pub fn syn(nth: RangeInclusive<u32>) -> Self {
        Self {
            kind: Kind::Syn,
            nth,
            server: None,
            port: None,
        }
    }

    /// SYN-ACKs, counted from 1.
    #[must_use]
    pub fn syn_ack(nth: RangeInclusive<u32>) -> Self {
        Self {
            kind: Kind::SynAck,
            ..Self::syn(nth)
        }
    }

    /// Segments with payload sent to a server port, counted from 1.
    #[must_use]
    pub fn data_to(port: u16, nth: RangeInclusive<u32>) -> Self {
        Self {
            kind: Kind::DataToServer,
            port: Some(port),
            ..Self::syn(nth)
        }
    }

    /// Segments with payload sent from a server port, counted from 1.
    #[must_use]
    pub fn data_from(port: u16, nth: RangeInclusive<u32>) -> Self {
        Self {
            kind: Kind::DataToClient,
            port: Some(port),
            ..Self::syn(nth)
        }
    }

    /// Only connections to this server address.
    #[must_use]
    pub fn of_server(self, address: IpAddr) -> Self {
        Self {
            server: Some(address),
            ..self
        }
    }

    /// Only connections to this server port.
    #[must_use]
    pub fn of_port(self, port: u16) -> Self {
        Self {
            port: Some(port),
            ..self
        }
    }

    fn applies(&self, segment: &Segment) -> bool {
        let (right_kind, server) = match self.kind {
            Kind::Syn => (segment.is_syn(), segment.destination),
            Kind::SynAck => (segment.is_syn_ack(), segment.source),
            Kind::DataToServer => (segment.payload > 0, segment.destination),
            Kind::DataToClient => (segment.payload > 0, segment.source),
        };
        right_kind
            && self.server.is_none_or(|wanted| wanted == server.ip())
            && self.port.is_none_or(|wanted| wanted == server.port())
    }
}

/// A rule and how many segments of each connection it has seen.
#[derive(Debug)]
pub(super) struct ActiveRule {
    rule: DropRule,
    seen: HashMap<(SocketAddr, SocketAddr), u32>,
}

impl ActiveRule {
    pub(super) fn new(rule: DropRule) -> Self {
        Self {
            rule,
            seen: HashMap::new(),
        }
    }

    /// Counts the segment and says whether it is one to drop.
    pub(super) fn drops(&mut self, segment: &Segment) -> bool {
        if !self.rule.applies(segment) {
            return false;
        }
        let seen = self
            .seen
            .entry((segment.source, segment.destination))
            .or_insert(0);
        *seen += 1;
        self.rule.nth.contains(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Flags;

    fn segment(from: &str, to: &str, syn: bool, ack: bool, payload: u32) -> Segment {
        Segment {
            source: from.parse().unwrap(),
            destination: to.parse().unwrap(),
            sequence: 0,
            acknowledged: 0,
            flags: Flags {
                syn,
                ack,
                ..Flags::default()
            },
            payload,
            window: 0,
            timestamps: None,
            selective: [None; 4],
        }
    }

    #[test]
    fn counts_per_connection() {
        let mut rule = ActiveRule::new(DropRule::syn(2..=3));
        let a = segment("10.1.0.9:1000", "10.1.0.1:2379", true, false, 0);
        let b = segment("10.1.0.9:1001", "10.1.0.1:2379", true, false, 0);
        let dropped: Vec<bool> = [a, a, b, a, a, b].iter().map(|s| rule.drops(s)).collect();
        assert_eq!(dropped, [false, true, false, true, false, true]);
    }

    #[test]
    fn keeps_to_its_kind_server_and_port() {
        let mut rule = ActiveRule::new(
            DropRule::syn_ack(1..=9)
                .of_server("10.1.0.1".parse().unwrap())
                .of_port(2379),
        );
        assert!(rule.drops(&segment("10.1.0.1:2379", "10.1.0.9:1000", true, true, 0)));
        assert!(!rule.drops(&segment("10.1.0.2:2379", "10.1.0.9:1000", true, true, 0)));
        assert!(!rule.drops(&segment("10.1.0.1:2380", "10.1.0.9:1000", true, true, 0)));
        assert!(!rule.drops(&segment("10.1.0.9:1000", "10.1.0.1:2379", true, false, 0)));
        let mut data = ActiveRule::new(DropRule::data_from(2379, 1..=1));
        assert!(!data.drops(&segment("10.1.0.1:2379", "10.1.0.9:1000", false, true, 0)));
        assert!(!data.drops(&segment("10.1.0.9:1000", "10.1.0.1:2379", false, true, 10)));
        assert!(data.drops(&segment("10.1.0.1:2379", "10.1.0.9:1000", false, true, 10)));
    }
}
