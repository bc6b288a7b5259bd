//! The raw cells of one slot.

use probe_common::bucket::BUCKETS;
use probe_common::cells::{COUNTERS_AT, Counter, Measure, STRIDE};

use super::{Counters, Distributions};
use crate::histogram::{self, Distribution};

/// A copy of one slot's cells: every histogram bucket and counter of one endpoint at one moment.
///
/// The kernel only adds, so the difference of two copies is what happened between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotCounts {
    cells: Vec<u64>,
}

/// A copy of one slot's cells that is put aside: a few hundred bytes instead of 100 KiB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactCounts(Box<[(u32, u64)]>);

impl CompactCounts {
    /// The copy as it was.
    #[must_use]
    pub fn expand(&self) -> SlotCounts {
        let mut counts = SlotCounts::default();
        for &(cell, count) in &self.0 {
            if let Some(place) = counts.cells.get_mut(cell as usize) {
                *place = count;
            }
        }
        counts
    }
}

impl Default for SlotCounts {
    fn default() -> Self {
        Self {
            cells: vec![0; STRIDE as usize],
        }
    }
}

impl SlotCounts {
    /// Takes over one slot's cells, in the order of `probe_common::cells`; missing ones count as 0.
    #[must_use]
    pub fn new(mut cells: Vec<u64>) -> Self {
        cells.resize(STRIDE as usize, 0);
        Self { cells }
    }

    /// The counts of `measure`, one per bucket.
    #[must_use]
    pub fn buckets(&self, measure: Measure) -> &[u64] {
        let start = measure as usize * BUCKETS as usize;
        &self.cells[start..start + BUCKETS as usize]
    }

    /// The value of `counter`.
    #[must_use]
    pub fn counter(&self, counter: Counter) -> u64 {
        self.cells[COUNTERS_AT as usize + counter as usize]
    }

    /// Whether nothing was ever counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells.iter().all(|&count| count == 0)
    }

    /// What was counted since `earlier`, a copy of the same slot.
    ///
    /// `SegmentMin` is the one histogram in which a count can move to a lower bucket. A move that straddles the copy
    /// shows as one count less in a bucket, which is taken as 0.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            cells: self
                .cells
                .iter()
                .zip(&earlier.cells)
                .map(|(now, then)| now.saturating_sub(*then))
                .collect(),
        }
    }

    /// The same counts in the room that only those above 0 take.
    #[must_use]
    pub fn compact(&self) -> CompactCounts {
        let counted = (0_u32..).zip(&self.cells).filter(|(_, count)| **count > 0);
        CompactCounts(counted.map(|(cell, count)| (cell, *count)).collect())
    }

    /// As [`SlotCounts::since`], for a copy that was put aside.
    #[must_use]
    pub fn since_compact(mut self, earlier: &CompactCounts) -> Self {
        for &(cell, then) in &earlier.0 {
            if let Some(count) = self.cells.get_mut(cell as usize) {
                *count = count.saturating_sub(then);
            }
        }
        self
    }

    /// The histograms.
    #[must_use]
    pub fn distributions(&self) -> Distributions {
        Distributions {
            handshake: self.distribution(Measure::Handshake),
            connect: self.distribution(Measure::Connect),
            path: self.distribution(Measure::Path),
            segment: self.distribution(Measure::Segment),
            segment_min: self.distribution(Measure::SegmentMin),
        }
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            opened: self.counter(Counter::Opened),
            established: self.counter(Counter::Established),
            refused: self.counter(Counter::Refused),
            timed_out: self.counter(Counter::TimedOut),
            unreachable: self.counter(Counter::Unreachable),
            abandoned: self.counter(Counter::Abandoned),
            reset: self.counter(Counter::Reset),
            failed_unknown: self.counter(Counter::FailedUnknown),
            syn_retransmits: self.counter(Counter::SynRetransmits),
            retransmits: self.counter(Counter::Retransmits),
            segments_out: self.counter(Counter::SegmentsOut),
            closed: self.counter(Counter::Closed),
            overflowed: self.counter(Counter::Overflowed),
            retransmitted_samples: self.counter(Counter::RetransmittedSamples),
            dropped_samples: self.counter(Counter::DroppedSamples),
            adopted: self.counter(Counter::Adopted),
        }
    }

    fn distribution(&self, measure: Measure) -> Distribution {
        histogram::from_buckets(self.buckets(measure))
    }
}

#[cfg(test)]
mod tests {
    use probe_common::bucket::index_of;
    use probe_common::cells::{bucket_cell, counter_cell};

    use super::*;

    fn counts(path_us: &[u32], opened: u64) -> SlotCounts {
        let mut cells = vec![0; STRIDE as usize];
        for &value in path_us {
            let index = u32::try_from(index_of(u64::from(value))).unwrap();
            cells[bucket_cell(0, Measure::Path, index) as usize] += 1;
        }
        cells[counter_cell(0, Counter::Opened) as usize] = opened;
        SlotCounts::new(cells)
    }

    #[test]
    fn every_measure_has_its_own_cells() {
        let counts = counts(&[10_000, 10_000, 30_000], 7);
        let distributions = counts.distributions();
        assert_eq!(distributions.path.len(), 3);
        assert_eq!(distributions.handshake.len(), 0);
        assert_eq!(distributions.segment.len(), 0);
        assert_eq!(counts.counters().opened, 7);
        assert!(!counts.is_empty());
        assert!(SlotCounts::default().is_empty());
    }

    #[test]
    fn the_difference_is_what_happened_between() {
        let then = counts(&[10_000], 1);
        let now = counts(&[10_000, 30_000], 4);
        let between = now.since(&then);
        assert_eq!(between.distributions().path.len(), 1);
        assert_eq!(between.counters().opened, 3);
        assert!(then.since(&now).is_empty());
        assert_eq!(now.compact().expand(), now);
        assert_eq!(now.clone().since_compact(&then.compact()), between);
    }
}
