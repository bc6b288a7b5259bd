//! Connections that the kernel side can neither see nor adopt, as the kernel's list of sockets shows them.

use crate::histogram::{self, Distribution};

/// What sampling found at one endpoint. These are the kernel's own estimates, looked at once per report interval: they
/// stand beside the distributions of RTT samples and are in none of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// Connections that were there when the observer came.
    pub found: u64,
    /// Those of them that were still there at the last look.
    pub open: u64,
    /// The smoothed RTT of each connection whose peer had acknowledged anything since the look before.
    pub smoothed: Distribution,
    /// The smallest RTT that the kernel remembers of each of these, over the last five minutes unless
    /// `net.ipv4.tcp_min_rtt_wlen` says otherwise.
    pub minimum: Distribution,
    /// Segments sent again since the observer came.
    pub retransmits: u64,
    /// Segments with data sent since then, retransmissions included.
    pub segments_out: u64,
}

impl Default for Sampled {
    fn default() -> Self {
        Self {
            found: 0,
            open: 0,
            smoothed: histogram::empty(),
            minimum: histogram::empty(),
            retransmits: 0,
            segments_out: 0,
        }
    }
}

impl Sampled {
    /// What was sampled since `earlier`, a copy of the same endpoint's; `found` and `open` are those of now.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            found: self.found,
            open: self.open,
            smoothed: difference(&self.smoothed, &earlier.smoothed),
            minimum: difference(&self.minimum, &earlier.minimum),
            retransmits: self.retransmits.saturating_sub(earlier.retransmits),
            segments_out: self.segments_out.saturating_sub(earlier.segments_out),
        }
    }

    /// Takes in another endpoint's.
    pub fn add(&mut self, other: &Self) {
        self.found += other.found;
        self.open += other.open;
        // Both have the kernel side's range, so adding cannot fail.
        let _ = self.smoothed.add(&other.smoothed);
        let _ = self.minimum.add(&other.minimum);
        self.retransmits += other.retransmits;
        self.segments_out += other.segments_out;
    }
}

/// Samples are only ever added, so the earlier ones are among the later.
fn difference(now: &Distribution, earlier: &Distribution) -> Distribution {
    let mut difference = now.clone();
    let _ = difference.subtract(earlier);
    difference
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(rtts_us: &[u64]) -> Sampled {
        let mut sampled = Sampled {
            found: 2,
            open: 1,
            ..Sampled::default()
        };
        for &rtt_us in rtts_us {
            histogram::record(&mut sampled.smoothed, rtt_us, 1);
            sampled.segments_out += 10;
        }
        sampled
    }

    #[test]
    fn the_difference_is_what_came_between() {
        let then = sampled(&[100, 10_000]);
        let now = sampled(&[100, 10_000, 30_000]);
        let between = now.since(&then);
        assert_eq!(between.smoothed.len(), 1);
        assert!(between.smoothed.equivalent(between.smoothed.max(), 30_000));
        assert_eq!(
            (between.found, between.open, between.segments_out),
            (2, 1, 10)
        );
        let mut sum = then.clone();
        sum.add(&between);
        assert_eq!(sum.smoothed, now.smoothed);
        assert_eq!((sum.found, sum.open), (4, 2));
    }
}
