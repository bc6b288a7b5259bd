//! What a side of a connection sent, and how it was acknowledged.

use std::time::Duration;

use super::flow::{Flow, Side};

/// A piece of the sequence, and when it was sent and acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentSegment {
    /// Sequence number of its first byte.
    pub sequence: u32,
    /// How far it moves the sequence.
    pub length: u32,
    /// When it was sent: more than once if retransmitted, also as a part of another segment.
    pub sent: Vec<Duration>,
    /// When the first acknowledgement that covers it was seen.
    pub acknowledged: Option<Duration>,
}

impl SentSegment {
    /// From sending to acknowledgement; `None` while unacknowledged and for retransmitted ones, where nobody can say
    /// which copy was acknowledged.
    #[must_use]
    pub fn rtt(&self) -> Option<Duration> {
        match self.sent.as_slice() {
            [once] => self.acknowledged?.checked_sub(*once),
            _ => None,
        }
    }
}

impl Flow<'_> {
    /// What a side sent, piece by piece in the order it was first sent, with its acknowledgement. SYN and FIN count as
    /// pieces; pure acknowledgements do not.
    #[must_use]
    pub fn sent_by(&self, side: Side) -> Vec<SentSegment> {
        let mut pieces: Vec<SentSegment> = Vec::new();
        // Pieces before this one are acknowledged.
        let mut open = 0;
        for packet in &self.packets {
            let segment = &packet.segment;
            if self.side_of(segment) != Some(side) {
                if segment.flags.ack {
                    while let Some(piece) = pieces.get_mut(open)
                        && !before(
                            segment.acknowledged,
                            piece.sequence.wrapping_add(piece.length),
                        )
                    {
                        piece.acknowledged = Some(packet.at);
                        open += 1;
                    }
                }
                continue;
            }
            if segment.length() == 0 || segment.flags.rst {
                continue;
            }
            let mut again = false;
            for piece in &mut pieces {
                let piece_end = piece.sequence.wrapping_add(piece.length);
                if before(piece.sequence, segment.end()) && before(segment.sequence, piece_end) {
                    piece.sent.push(packet.at);
                    again = true;
                }
            }
            if !again {
                pieces.push(SentSegment {
                    sequence: segment.sequence,
                    length: segment.length(),
                    sent: vec![packet.at],
                    acknowledged: None,
                });
            }
        }
        pieces
    }
}

/// Whether `a` comes before `b` in sequence space (RFC 9293, section 3.4).
pub(super) fn before(a: u32, b: u32) -> bool {
    a != b && b.wrapping_sub(a) < 1 << 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::flow::tests::{OPENING, recording};

    #[test]
    fn segments_meet_their_acknowledgements() {
        let mut lines = OPENING.to_vec();
        lines.extend([
            (20, true, "A", 100, 500, 50),
            (21, true, "A", 150, 500, 50),
            (32, false, "A", 500, 200, 0),
            (40, true, "A", 200, 500, 50),
            (240, true, "A", 200, 500, 50),
            (250, false, "A", 500, 250, 0),
            (260, true, "FA", 250, 500, 0),
        ]);
        let recording = recording(&lines);
        let flow = &recording.flows()[0];
        let rtts: Vec<Option<u128>> = flow
            .sent_by(Side::Client)
            .iter()
            .map(|piece| piece.rtt().map(|rtt| rtt.as_millis()))
            .collect();
        assert_eq!(rtts, [Some(10), Some(12), Some(11), None, None]);
        let pieces = flow.sent_by(Side::Client);
        assert_eq!(pieces[3].sent.len(), 2);
        assert_eq!((pieces[4].length, pieces[4].acknowledged), (1, None));
        assert_eq!(flow.fins_by(Side::Client), 1);
        assert_eq!(flow.sent_by(Side::Server).len(), 1);
    }

    #[test]
    fn sequence_numbers_wrap() {
        assert!(before(u32::MAX - 5, 10) && !before(10, u32::MAX - 5) && !before(3, 3));
    }
}
