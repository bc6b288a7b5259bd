//! What the charts show: a percentile line and a line over time for each target.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use super::chart::{Axis, Line};
use crate::histogram::Distribution;
use crate::output::Timestamp;
use crate::report::merge::{Group, Point};

/// Points of a line over time at most; more intervals are put together.
const POINTS: usize = 400;
/// The percentile axis ends where one sample of this many is beyond.
const NINES: f64 = 5.0;

/// The axis of percentiles: as far to the right as a quantile is from 1, in powers of ten.
pub(super) fn percentile_axis<'a>(groups: impl Iterator<Item = &'a Group>) -> Axis {
    let samples = groups.map(|group| group.total.distribution.len());
    let nines = as_f64(samples.max().unwrap_or(1).max(10)).log10();
    let end = nines.ceil().min(NINES);
    Axis {
        title: "percentile",
        range: 0.0..end,
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and 5"
        )]
        ticks: end as usize + 1,
        label: |nines, _| {
            let percent = 100.0 * (1.0 - 10_f64.powf(-nines));
            if percent < 0.001 {
                return "0 %".to_owned();
            }
            let text = format!("{percent:.3}");
            format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
        },
    }
}

/// The percentile line of one group.
pub(super) fn percentiles(color: usize, distribution: &Distribution, axis: &Axis) -> Line {
    let last = as_f64(distribution.len()).log10();
    let steps = 200;
    let points = (0..=steps)
        .map(|step| axis.range.end * f64::from(step) / f64::from(steps))
        // Beyond the last sample there is nothing to know.
        .take_while(|&nines| nines <= last.max(0.31))
        .map(|nines| {
            let quantile = 1.0 - 10_f64.powf(-nines);
            (nines, as_f64(distribution.value_at_quantile(quantile)))
        })
        .collect();
    Line {
        color,
        thin: false,
        points,
    }
}

/// The axis of time.
pub(super) fn time_axis(span: (SystemTime, SystemTime)) -> Axis {
    let seconds = |time: SystemTime| {
        time.duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs_f64()
    };
    let (start, end) = (seconds(span.0), seconds(span.1));
    Axis {
        title: "time (UTC)",
        range: start..end.max(start + 1.0),
        ticks: 8,
        label: time_label,
    }
}

fn time_label(seconds: f64, range: &Range<f64>) -> String {
    let since = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let time = SystemTime::UNIX_EPOCH
        .checked_add(since)
        .map_or_else(String::new, |time| Timestamp(time).to_string());
    // 2026-12-01T20:00:00.000Z
    let part = if range.end - range.start > 86_400.0 {
        5..16
    } else {
        11..19
    };
    time.get(part).unwrap_or(&time).replace('T', " ")
}

/// Median and 99th percentile of one group over time.
pub(super) fn over_time(color: usize, group: &Group) -> [Line; 2] {
    let mut points = group.points.clone();
    points.sort_by_key(|point| point.time);
    let size = points.len().div_ceil(POINTS).max(1);
    let bins: Vec<&[Point]> = points.chunks(size).collect();
    let line = |thin, of: fn(&[Point]) -> u64| Line {
        color,
        thin,
        points: bins
            .iter()
            .filter_map(|bin| {
                let since = bin[bin.len() / 2]
                    .time
                    .duration_since(SystemTime::UNIX_EPOCH)
                    .ok()?;
                Some((since.as_secs_f64(), as_f64(of(bin))))
            })
            .collect(),
    };
    [line(false, middle), line(true, highest)]
}

/// The middle one of the medians: medians cannot be merged.
fn middle(bin: &[Point]) -> u64 {
    let mut medians: Vec<u64> = bin.iter().map(|point| point.p50).collect();
    medians.sort_unstable();
    medians.get(medians.len() / 2).copied().unwrap_or(0)
}

fn highest(bin: &[Point]) -> u64 {
    bin.iter().map(|point| point.p99).max().unwrap_or(0)
}

#[allow(
    clippy::cast_precision_loss,
    reason = "drawn to a pixel, counted below 2^53"
)]
fn as_f64(number: u64) -> f64 {
    number as f64
}
