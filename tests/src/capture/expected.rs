//! Which RTT samples a sender's kernel takes, worked out from the capture by RFC 6298 and 2018 and the way Linux applies
//! them (`tcp_clean_rtx_queue`, `tcp_ack_update_rtt` and `tcp_rtt_estimator` in `net/ipv4/tcp_input.c`).

use std::collections::VecDeque;
use std::time::Duration;

use super::flow::{Flow, Side};
use super::sent::before;

/// What an acknowledgement tells the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledgement {
    /// When it was seen, since the Unix epoch.
    pub at: Duration,
    /// From the sending of the oldest segment that it newly acknowledges; `None` if one of those was sent again, so that
    /// nobody can say which copy it is about.
    pub rtt: Option<Duration>,
    /// Whether it is the first of its round trip: the one for which the kernel calls its observers.
    pub first_of_round_trip: bool,
}

struct Sent {
    end: u32,
    at: Duration,
    again: bool,
    selected: bool,
}

impl Flow<'_> {
    /// Every acknowledgement of something new that was sent by `side`, in order; the handshake's is not among them.
    #[must_use]
    pub fn acknowledgements(&self, side: Side) -> Vec<Acknowledgement> {
        let mut found = Vec::new();
        let mut outstanding: VecDeque<Sent> = VecDeque::new();
        let mut next = None;
        let mut round_trip_ends = None;
        for packet in &self.packets {
            let segment = &packet.segment;
            if self.side_of(segment) == Some(side) {
                if segment.length() == 0 || segment.flags.rst {
                    continue;
                }
                let fresh = next.is_none_or(|next| before(next, segment.end()));
                if fresh {
                    // What a retransmission takes along is sent for the first time, but not told apart.
                    let again = next.is_some_and(|next| before(segment.sequence, next));
                    outstanding.push_back(Sent {
                        end: segment.end(),
                        at: packet.at,
                        again,
                        selected: false,
                    });
                    next = Some(segment.end());
                }
                for sent in &mut outstanding {
                    let covered =
                        before(segment.sequence, sent.end) && !before(segment.end(), sent.end);
                    sent.again |= covered && (!fresh || sent.end != segment.end());
                }
                continue;
            }
            if !segment.flags.ack {
                continue;
            }
            let acknowledged = segment.acknowledged;
            let mut oldest = None;
            let (mut any, mut again) = (false, false);
            while let Some(sent) = outstanding.front()
                && !before(acknowledged, sent.end)
            {
                any = true;
                again |= sent.again;
                if !sent.selected && !sent.again {
                    oldest = oldest.or(Some(sent.at));
                }
                outstanding.pop_front();
            }
            let cumulative = oldest.filter(|_| !again);
            let mut selective = None;
            // In the order of the sequence, as the kernel goes through them; the blocks come newest first.
            for sent in outstanding.iter_mut().filter(|sent| !sent.selected) {
                let covers = |&(left, right): &(u32, u32)| {
                    before(left, sent.end) && !before(right, sent.end)
                };
                if segment.selective.iter().flatten().any(covers) {
                    any = true;
                    sent.selected = true;
                    if !sent.again {
                        selective = selective.or(Some(sent.at));
                    }
                }
            }
            if !any {
                continue;
            }
            let rtt = cumulative
                .or(selective)
                .and_then(|sent| packet.at.checked_sub(sent));
            let Some(end) = round_trip_ends else {
                // The SYN's: the first round trip ends with it.
                round_trip_ends = next;
                continue;
            };
            // Without timestamps what was sent again gives no sample.
            let sampled = rtt.is_some() || segment.timestamps.is_some();
            let first = sampled && before(end, acknowledged);
            if first {
                round_trip_ends = next;
            }
            found.push(Acknowledgement {
                at: packet.at,
                rtt,
                first_of_round_trip: first,
            });
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::flow::tests::{OPENING, recording};

    #[test]
    fn one_sample_a_round_trip_and_none_of_what_was_sent_again() {
        let mut lines = OPENING.to_vec();
        lines.extend([
            (20, true, "A", 100, 500, 50),
            (21, true, "A", 150, 500, 50),
            (30, false, "A", 500, 150, 0),
            (32, false, "A", 500, 200, 0),
            (40, true, "A", 200, 500, 50),
            (240, true, "A", 200, 500, 50),
            (250, false, "A", 500, 250, 0),
            (260, true, "A", 250, 500, 50),
            (275, false, "A", 500, 300, 0),
        ]);
        let recording = recording(&lines);
        let seen: Vec<_> = recording.flows()[0]
            .acknowledgements(Side::Client)
            .iter()
            .map(|ack| (ack.rtt.map(|rtt| rtt.as_millis()), ack.first_of_round_trip))
            .collect();
        assert_eq!(
            seen,
            [
                (Some(10), true),
                (Some(11), false),
                (None, false),
                (Some(15), true)
            ]
        );
    }
}
