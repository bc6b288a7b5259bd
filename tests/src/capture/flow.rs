//! One connection as the capture saw it.

use std::net::SocketAddr;
use std::time::Duration;

use super::recording::Packet;
use crate::segment::Segment;

/// An end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Sent the SYN.
    Client,
    /// Was asked.
    Server,
}

/// The packets of one connection, from its first SYN on.
#[derive(Debug, Clone)]
pub struct Flow<'a> {
    /// Who opened it.
    pub client: SocketAddr,
    /// Who was asked.
    pub server: SocketAddr,
    /// In the order the kernel saw them.
    pub packets: Vec<&'a Packet>,
}

impl Flow<'_> {
    /// SYNs seen, retransmissions included.
    #[must_use]
    pub fn syns(&self) -> usize {
        self.packets
            .iter()
            .filter(|packet| packet.segment.is_syn())
            .count()
    }

    /// SYN to SYN-ACK. `None` when there was no answer or when the SYN was sent again before it.
    #[must_use]
    pub fn handshake_rtt(&self) -> Option<Duration> {
        let answer = self
            .packets
            .iter()
            .position(|packet| packet.segment.is_syn_ack())?;
        let before = self.packets.get(..answer)?;
        let mut syns = before.iter().filter(|packet| packet.segment.is_syn());
        let syn = syns.next()?;
        if syns.next().is_some() {
            return None;
        }
        self.packets.get(answer)?.at.checked_sub(syn.at)
    }

    /// Whether the handshake was completed by the client's ACK.
    #[must_use]
    pub fn is_established(&self) -> bool {
        let answer = self
            .packets
            .iter()
            .position(|packet| packet.segment.is_syn_ack());
        let after = answer
            .and_then(|answer| self.packets.get(answer..))
            .unwrap_or_default();
        after.iter().any(|packet| {
            let Segment { flags, .. } = packet.segment;
            self.side_of(&packet.segment) == Some(Side::Client)
                && flags.ack
                && !flags.syn
                && !flags.rst
        })
    }

    /// RSTs sent by a side.
    #[must_use]
    pub fn resets_by(&self, side: Side) -> usize {
        self.by(side)
            .filter(|packet| packet.segment.flags.rst)
            .count()
    }

    /// FINs sent by a side, retransmissions included.
    #[must_use]
    pub fn fins_by(&self, side: Side) -> usize {
        self.by(side)
            .filter(|packet| packet.segment.flags.fin)
            .count()
    }

    /// Which side sent a segment; `None` when it is of another connection.
    #[must_use]
    pub fn side_of(&self, segment: &Segment) -> Option<Side> {
        if (segment.source, segment.destination) == (self.client, self.server) {
            Some(Side::Client)
        } else if (segment.source, segment.destination) == (self.server, self.client) {
            Some(Side::Server)
        } else {
            None
        }
    }

    /// Whether the segment opens a new connection between the same ports.
    pub(super) fn is_reopened_by(&self, segment: &Segment) -> bool {
        let first = self.packets.first().map(|packet| packet.segment.sequence);
        segment.is_syn()
            && self.side_of(segment) == Some(Side::Client)
            && first != Some(segment.sequence)
    }

    fn by(&self, side: Side) -> impl Iterator<Item = &Packet> {
        self.packets
            .iter()
            .copied()
            .filter(move |packet| self.side_of(&packet.segment) == Some(side))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::capture::Recording;
    use crate::segment::Flags;

    /// (ms, from the client, flags, sequence, acknowledged, payload)
    pub(in crate::capture) type Line = (u64, bool, &'static str, u32, u32, u32);

    pub(in crate::capture) fn recording(lines: &[Line]) -> Recording {
        let client = "10.1.0.9:40000".parse().unwrap();
        let server = "10.1.0.1:2379".parse().unwrap();
        let packet = |&(ms, out, flags, sequence, acknowledged, payload): &Line| Packet {
            at: Duration::from_millis(ms),
            segment: Segment {
                source: if out { client } else { server },
                destination: if out { server } else { client },
                sequence,
                acknowledged,
                flags: Flags {
                    syn: flags.contains('S'),
                    ack: flags.contains('A'),
                    fin: flags.contains('F'),
                    rst: flags.contains('R'),
                },
                payload,
                window: 0,
                timestamps: None,
                selective: [None; 4],
            },
        };
        Recording {
            packets: lines.iter().map(packet).collect(),
        }
    }

    pub(in crate::capture) const OPENING: [Line; 3] = [
        (0, true, "S", 99, 0, 0),
        (10, false, "SA", 499, 100, 0),
        (10, true, "A", 100, 500, 0),
    ];

    #[test]
    fn a_clean_handshake() {
        let recording = recording(&OPENING);
        let flows = recording.flows();
        assert_eq!(flows.len(), 1);
        assert_eq!((flows[0].syns(), flows[0].is_established()), (1, true));
        assert_eq!(flows[0].handshake_rtt(), Some(Duration::from_millis(10)));
    }

    #[test]
    fn a_retransmitted_syn_gives_no_handshake_rtt() {
        let recording = recording(&[
            (0, true, "S", 99, 0, 0),
            (1000, true, "S", 99, 0, 0),
            (1010, false, "SA", 499, 100, 0),
            (1010, true, "A", 100, 500, 0),
        ]);
        let flows = recording.flows();
        assert_eq!(
            (flows.len(), flows[0].syns(), flows[0].handshake_rtt()),
            (1, 2, None)
        );
    }

    #[test]
    fn a_port_used_again_is_another_connection() {
        let mut lines = OPENING.to_vec();
        lines.extend([
            (20, true, "R", 100, 0, 0),
            (30, true, "S", 7000, 0, 0),
            (41, false, "RA", 0, 7001, 0),
        ]);
        let recording = recording(&lines);
        let flows = recording.flows();
        assert_eq!(flows.len(), 2);
        assert_eq!(
            (
                flows[0].resets_by(Side::Client),
                flows[0].resets_by(Side::Server)
            ),
            (1, 0)
        );
        assert_eq!(
            (flows[1].resets_by(Side::Server), flows[1].is_established()),
            (1, false)
        );
    }
}
