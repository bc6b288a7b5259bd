//! Records put together: by measure, role, target, side and process, within that by phase, and over time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use super::record::{Place, Record, Samples};
use crate::histogram::{self, Distribution};

/// The same interval in an interval log and in JSON differs by rounding to milliseconds.
const SAME_START_MS: u64 = 5;

/// Everything that was read.
#[derive(Debug, Default)]
pub(super) struct Merged {
    pub(super) groups: BTreeMap<Place, Group>,
    pub(super) nodes: BTreeSet<String>,
    /// First start and last end.
    pub(super) span: Option<(SystemTime, SystemTime)>,
    /// Records that were in more than one file; counted once.
    pub(super) duplicates: u64,
    /// Starts of the records of each place and node, milliseconds since 1970, and the file each was in.
    starts: BTreeMap<Place, BTreeMap<u64, usize>>,
    file: usize,
    /// Keep nodes apart.
    per_node: bool,
}

/// One measure of one target.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) total: Sum,
    /// In the order of their first interval.
    pub(super) phases: Vec<(String, Sum)>,
    /// In the order they were read.
    pub(super) points: Vec<Point>,
}

/// Samples added up.
#[derive(Clone, Debug)]
pub(super) struct Sum {
    pub(super) distribution: Distribution,
    /// Samples of which only the extremes are known, and those.
    pub(super) beside: Option<(u64, u64, u64)>,
}

/// One interval of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// Its middle.
    pub(super) time: SystemTime,
    pub(super) p50: u64,
    pub(super) p99: u64,
}

impl Default for Sum {
    fn default() -> Self {
        Self {
            distribution: histogram::empty(),
            beside: None,
        }
    }
}

impl Sum {
    pub(super) fn add(&mut self, samples: &Samples) {
        match samples {
            // Both have the kernel side's range, so adding cannot fail.
            Samples::Whole(distribution) => {
                let _ = self.distribution.add(distribution);
            }
            &Samples::Extremes { count, min, max } => {
                let (n, low, high) = self.beside.unwrap_or((0, u64::MAX, 0));
                self.beside = Some((n.saturating_add(count), low.min(min), high.max(max)));
            }
        }
    }

    /// Samples, those of which only the extremes are known included.
    pub(super) fn count(&self) -> u64 {
        let beside = self.beside.map_or(0, |(count, ..)| count);
        self.distribution.len().saturating_add(beside)
    }

    /// Smallest and largest sample, microseconds; `None` without samples.
    pub(super) fn extremes(&self) -> Option<(u64, u64)> {
        let whole = (!self.distribution.is_empty())
            .then(|| (self.distribution.min(), self.distribution.max()));
        let beside = self.beside.map(|(_, low, high)| (low, high));
        match (whole, beside) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (one, other) => one.or(other),
        }
    }

    /// A quantile, microseconds; `None` where no whole distribution is known.
    pub(super) fn quantile(&self, quantile: f64) -> Option<u64> {
        (!self.distribution.is_empty()).then(|| self.distribution.value_at_quantile(quantile))
    }
}

impl Group {
    fn phase(&mut self, name: String) -> &mut Sum {
        let known = self.phases.iter().position(|(known, _)| *known == name);
        let index = known.unwrap_or_else(|| {
            self.phases.push((name, Sum::default()));
            self.phases.len() - 1
        });
        &mut self.phases[index].1
    }
}

impl Merged {
    /// Nothing yet; `per_node` keeps the nodes' measurements of one target apart.
    pub(super) fn new(per_node: bool) -> Self {
        Self {
            per_node,
            ..Self::default()
        }
    }

    /// Whether any of it tells processes apart.
    pub(super) fn is_by_process(&self) -> bool {
        self.groups.keys().any(|place| !place.process.is_empty())
    }

    /// What is added from now on comes from another file.
    pub(super) fn next_file(&mut self) {
        self.file += 1;
    }

    /// Adds a record.
    pub(super) fn add(&mut self, record: Record) {
        let Record {
            mut place,
            phase,
            start,
            length,
            samples,
        } = record;
        if self.is_known(&place, start) {
            self.duplicates += 1;
            return;
        }
        self.nodes.insert(place.node.clone());
        let end = start.checked_add(length).unwrap_or(start);
        self.span = Some(match self.span {
            Some((first, last)) => (first.min(start), last.max(end)),
            None => (start, end),
        });
        if !self.per_node {
            place.node = String::new();
        }
        let group = self.groups.entry(place).or_default();
        group.total.add(&samples);
        if let Some(phase) = phase {
            group.phase(phase).add(&samples);
        }
        if let Samples::Whole(distribution) = samples {
            group.points.push(Point {
                time: start.checked_add(length / 2).unwrap_or(start),
                p50: distribution.value_at_quantile(0.5),
                p99: distribution.value_at_quantile(0.99),
            });
        }
    }

    fn is_known(&mut self, place: &Place, start: SystemTime) -> bool {
        let since = start
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        let at = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let starts = self.starts.entry(place.clone()).or_default();
        let near = at.saturating_sub(SAME_START_MS)..=at.saturating_add(SAME_START_MS);
        if starts.range(near).any(|(_, &file)| file != self.file) {
            return true;
        }
        starts.insert(at, self.file);
        false
    }
}
