//! What the link did, and how late it was.

use std::time::Duration;

/// Counts since the link came up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets handed to their destination.
    pub carried: u64,
    /// Lost by chance, as asked for.
    pub lost: u64,
    /// Dropped by a [`super::DropRule`].
    pub dropped_by_rule: u64,
    /// Dropped because the destination was declared dead.
    pub dropped_dead: u64,
    /// Dropped before a bottleneck.
    pub overflowed: u64,
    /// Dropped because longer than the path carries.
    pub too_long: u64,
    /// For an address of no node, or no IP packet.
    pub unroutable: u64,
    /// The device did not take them.
    pub refused: u64,
    /// Sum of how much later than intended packets left: the lab's own scheduling noise.
    pub late_total: Duration,
    /// The worst single one.
    pub late_worst: Duration,
}

impl LinkStats {
    /// Mean lateness of a carried packet.
    #[must_use]
    pub fn late_mean(&self) -> Duration {
        let carried = u32::try_from(self.carried).unwrap_or(u32::MAX).max(1);
        self.late_total / carried
    }

    pub(super) fn count_departure(&mut self, late: Duration) {
        self.carried += 1;
        self.late_total += late;
        self.late_worst = self.late_worst.max(late);
    }
}
