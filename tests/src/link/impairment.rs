//! What a direction of the link does to packets, and the decision for each one. Pure: time and chance come in.

use std::time::{Duration, Instant};

use fastrand::Rng;

/// What happens to packets from one node to another. The default passes them on at once.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Impairment {
    /// One-way delay.
    pub delay: Duration,
    /// Each packet's delay varies evenly by up to this much, both ways (never below 0).
    pub jitter: Duration,
    /// Share of packets lost, 0.0 to 1.0.
    pub loss: f64,
    /// Some packets are delayed further.
    pub spike: Option<Spike>,
    /// Whether a packet may overtake an earlier one that was delayed more. Off, the order is kept and later packets
    /// wait, as in a queue.
    pub reordering: bool,
    /// Bottleneck rate.
    pub rate: Option<Rate>,
    /// Longer IP packets vanish without a word, as at a black hole for path MTU discovery. In bytes.
    pub largest: Option<usize>,
}

/// An extra delay that only some packets get.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spike {
    /// Share of packets that get it, 0.0 to 1.0.
    pub probability: f64,
    /// How much longer those take.
    pub extra: Duration,
}

/// A bottleneck: packets leave one after the other at this rate, and those that would wait too long are dropped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Bits of IP packet per second.
    pub bits_per_second: u64,
    /// The longest wait in its queue.
    pub queue: Duration,
}

impl Impairment {
    /// Half of `rtt`: set on both directions, it makes a path of that round-trip time.
    #[must_use]
    pub fn half_of_rtt(rtt: Duration) -> Self {
        Self {
            delay: rtt / 2,
            ..Self::default()
        }
    }

    /// The same with evenly spread jitter.
    #[must_use]
    pub fn with_jitter(self, jitter: Duration) -> Self {
        Self { jitter, ..self }
    }

    /// The same with this share of packets lost.
    #[must_use]
    pub fn with_loss(self, loss: f64) -> Self {
        Self { loss, ..self }
    }

    /// The same with an extra delay for some packets; the others queue behind them.
    #[must_use]
    pub fn with_spike(self, probability: f64, extra: Duration) -> Self {
        Self {
            spike: Some(Spike { probability, extra }),
            ..self
        }
    }

    /// The same with some packets held back so that later ones overtake them.
    #[must_use]
    pub fn with_reordering(self, probability: f64, held_back: Duration) -> Self {
        Self {
            reordering: true,
            ..self.with_spike(probability, held_back)
        }
    }

    /// The same with a bottleneck.
    #[must_use]
    pub fn with_rate(self, bits_per_second: u64, queue: Duration) -> Self {
        Self {
            rate: Some(Rate {
                bits_per_second,
                queue,
            }),
            ..self
        }
    }
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It leaves at this moment.
    Deliver(Instant),
    /// Lost by chance.
    Lost,
    /// No room before the bottleneck.
    Overflow,
    /// Longer than the path carries.
    TooLong,
}

/// One direction between two nodes: its impairment and what that has to remember.
#[derive(Debug, Default)]
pub(super) struct Direction {
    pub(super) impairment: Impairment,
    last_departure: Option<Instant>,
    bottleneck_free: Option<Instant>,
}

impl Direction {
    /// Decides for a packet of `bytes` that came in `now`.
    pub(super) fn decide(&mut self, now: Instant, bytes: usize, rng: &mut Rng) -> Fate {
        let Impairment {
            delay,
            jitter,
            loss,
            spike,
            reordering,
            rate,
            largest,
        } = self.impairment;
        if largest.is_some_and(|largest| bytes > largest) {
            return Fate::TooLong;
        }
        if loss > 0.0 && rng.f64() < loss {
            return Fate::Lost;
        }
        let mut departure = now;
        if let Some(rate) = rate {
            let free = self.bottleneck_free.unwrap_or(now).max(now);
            if free - now > rate.queue {
                return Fate::Overflow;
            }
            let nanos = (bytes as u64) * 8 * 1_000_000_000 / rate.bits_per_second.max(1);
            departure = free + Duration::from_nanos(nanos);
            self.bottleneck_free = Some(departure);
        }
        departure += varied(delay, jitter, rng);
        if let Some(spike) = spike
            && rng.f64() < spike.probability
        {
            departure += spike.extra;
        }
        if !reordering {
            departure = self
                .last_departure
                .map_or(departure, |last| departure.max(last));
            self.last_departure = Some(departure);
        }
        Fate::Deliver(departure)
    }
}

fn varied(delay: Duration, jitter: Duration, rng: &mut Rng) -> Duration {
    if jitter.is_zero() {
        return delay;
    }
    (delay + jitter.mul_f64(2.0 * rng.f64())).saturating_sub(jitter)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn delays(impairment: Impairment, n: u32, gap: Duration) -> Vec<Option<Duration>> {
        let mut direction = Direction {
            impairment,
            ..Direction::default()
        };
        let mut rng = Rng::with_seed(7);
        let start = Instant::now();
        (0..n)
            .map(|i| {
                let now = start + gap * i;
                match direction.decide(now, 1250, &mut rng) {
                    Fate::Deliver(at) => Some(at - now),
                    _ => None,
                }
            })
            .collect()
    }

    #[test]
    fn half_of_the_rtt_each_way() {
        let all = delays(Impairment::half_of_rtt(10 * MS), 3, MS);
        assert_eq!(all, [Some(5 * MS); 3]);
    }

    #[test]
    fn jitter_stays_within_its_bounds_and_is_repeatable() {
        let jittery = Impairment::half_of_rtt(10 * MS).with_jitter(2 * MS);
        let all = delays(jittery, 1000, 10 * MS);
        assert!(all.iter().flatten().all(|d| (3 * MS..=7 * MS).contains(d)));
        assert!(
            all.iter().flatten().any(|d| *d < 4 * MS) && all.iter().flatten().any(|d| *d > 6 * MS)
        );
        assert_eq!(all, delays(jittery, 1000, 10 * MS));
    }

    #[test]
    fn jitter_beyond_the_delay_never_goes_back_in_time() {
        let all = delays(Impairment::default().with_jitter(5 * MS), 500, 20 * MS);
        assert!(all.iter().flatten().all(|d| *d <= 5 * MS));
    }

    #[test]
    fn loss_is_near_the_share_asked_for() {
        let lost = delays(Impairment::default().with_loss(0.05), 10_000, MS)
            .iter()
            .filter(|d| d.is_none())
            .count();
        assert!((400..600).contains(&lost), "{lost}");
    }

    #[test]
    fn order_is_kept_unless_reordering_is_asked_for() {
        let late = Impairment::half_of_rtt(2 * MS).with_spike(0.1, 20 * MS);
        let overtakes = |all: &[Option<Duration>]| {
            all.windows(2)
                .any(|pair| pair[1].unwrap() + MS < pair[0].unwrap())
        };
        assert!(!overtakes(&delays(late, 1000, MS)));
        let reordered = Impairment::half_of_rtt(2 * MS).with_reordering(0.1, 20 * MS);
        assert!(overtakes(&delays(reordered, 1000, MS)));
    }

    #[test]
    fn a_bottleneck_spaces_packets_and_overflows() {
        // 1250 bytes at 10 Mbit/s take 1 ms each; they arrive every 0.1 ms; 5 ms of queue.
        let narrow = Impairment::default().with_rate(10_000_000, 5 * MS);
        let all = delays(narrow, 20, MS / 10);
        assert_eq!(all[0], Some(MS));
        assert_eq!(all[1], Some(Duration::from_micros(1900)));
        assert!(all.iter().any(Option::is_none));
    }
}
