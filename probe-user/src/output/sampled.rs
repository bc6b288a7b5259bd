//! Connections that were there before and are only sampled, as they are written.

use std::fmt::Write as _;

use serde::Serialize;

use super::DistributionReport;
use crate::measure::Sampled;

/// Where these values come from, in every output.
pub(super) const SOURCE: &str = "sock_diag";

/// What the two distributions are called where they stand beside measures.
pub(crate) const SAMPLED_SMOOTHED: &str = "sampled_smoothed";
pub(crate) const SAMPLED_MINIMUM: &str = "sampled_minimum";

/// What sampling found at one target, in the JSON shape.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampledReport {
    /// Always [`SOURCE`].
    pub source: &'static str,
    /// Connections that were there when the observer came.
    pub found: u64,
    /// Those of them that were still there at the last look.
    pub open: u64,
    /// Smoothed RTTs, one per connection and look at which its peer had acknowledged something new.
    pub smoothed: DistributionReport,
    /// The smallest RTT that the kernel remembered of each of these.
    pub minimum: DistributionReport,
    /// Segments sent again.
    pub retransmits: u64,
    /// Segments with data sent, retransmissions included.
    pub segments_out: u64,
}

impl From<Sampled> for SampledReport {
    /// Distributions move, they are not copied.
    fn from(sampled: Sampled) -> Self {
        Self {
            source: SOURCE,
            found: sampled.found,
            open: sampled.open,
            smoothed: DistributionReport::with_source(sampled.smoothed, SOURCE),
            minimum: DistributionReport::with_source(sampled.minimum, SOURCE),
            retransmits: sampled.retransmits,
            segments_out: sampled.segments_out,
        }
    }
}

impl SampledReport {
    /// Both distributions with names that no measure has.
    pub fn measures(&self) -> impl Iterator<Item = (&'static str, &DistributionReport)> {
        [
            (SAMPLED_SMOOTHED, &self.smoothed),
            (SAMPLED_MINIMUM, &self.minimum),
        ]
        .into_iter()
    }

    /// One line for people.
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut text = format!(
            "{} of {} connections from before joinprobe open, sampled ({SOURCE}) and judged by no limit: ",
            self.open, self.found
        );
        let median = |report: &DistributionReport| {
            report.quantiles().map(|quantiles| {
                let micros = quantiles.p50_us;
                format!("{}.{} ms", micros / 1000, micros % 1000 / 100)
            })
        };
        match median(&self.smoothed) {
            Some(smoothed) => {
                let _ = write!(
                    text,
                    "smoothed RTT p50 {smoothed} (n={})",
                    self.smoothed.count()
                );
            }
            None => text.push_str("nothing new acknowledged"),
        }
        if let Some(minimum) = median(&self.minimum) {
            let _ = write!(text, ", minimum p50 {minimum}");
        }
        let _ = write!(
            text,
            ", {} of {} segments resent",
            self.retransmits, self.segments_out
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram;
    use crate::output::samples;

    #[test]
    fn says_what_it_is() {
        let sampled = samples::sampled();
        let quiet = Sampled {
            smoothed: histogram::empty(),
            minimum: histogram::empty(),
            ..sampled.clone()
        };
        assert_eq!(
            SampledReport::from(quiet).sentence(),
            "2 of 3 connections from before joinprobe open, sampled (sock_diag) and judged by no limit: nothing new \
             acknowledged, 0 of 40 segments resent"
        );
        assert_eq!(
            SampledReport::from(sampled).sentence(),
            "2 of 3 connections from before joinprobe open, sampled (sock_diag) and judged by no limit: smoothed RTT p50 \
             10.3 ms (n=2), minimum p50 10.1 ms, 0 of 40 segments resent"
        );
    }
}
