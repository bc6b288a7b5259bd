//! A histogram drawn with characters.

use std::io::{self, Write};

use super::text::duration;
use crate::histogram::Distribution;
use crate::output::Marks;

/// Lines at most.
const LINES: usize = 16;
/// Characters of the longest bar.
const LENGTH: u64 = 50;
/// How much wider each line's range is than the one before; the first that needs few enough lines is taken.
const RATIOS: [f64; 7] = [1.02, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0];

/// Draws `distribution` under `title`; nothing without samples.
///
/// # Errors
/// Those of `out`.
pub(super) fn write(
    title: &str,
    distribution: &Distribution,
    marks: Marks,
    out: &mut dyn Write,
) -> io::Result<()> {
    if distribution.is_empty() {
        return Ok(());
    }
    let bounds = bounds(distribution.min().max(1), distribution.max());
    let mut counts = vec![0_u64; bounds.len()];
    for step in distribution.iter_recorded() {
        let value = step.value_iterated_to();
        let line = bounds.partition_point(|&upper| upper < value);
        if let Some(count) = counts.get_mut(line) {
            *count += step.count_at_value();
        }
    }
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    writeln!(out, "\n{title} (n={})", distribution.len())?;
    for (upper, count) in bounds.iter().zip(&counts) {
        let line = format!(
            "  <= {:>9} {count:>9} {}",
            duration(*upper),
            bar(*count, most, marks)
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Upper ends of the lines, growing by one ratio, from the smallest sample to the largest.
fn bounds(min: u64, max: u64) -> Vec<u64> {
    for ratio in RATIOS {
        let mut bounds = Vec::new();
        let mut upper = min;
        while upper < max && bounds.len() < LINES {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_precision_loss,
                clippy::cast_sign_loss,
                reason = "positive and below 2^27"
            )]
            let next = (upper as f64 * ratio).ceil() as u64;
            upper = next.max(upper + 1).min(max);
            bounds.push(upper);
        }
        if upper >= max {
            if bounds.is_empty() {
                bounds.push(max);
            }
            return bounds;
        }
    }
    vec![max]
}

fn bar(count: u64, most: u64, marks: Marks) -> String {
    let eighths = |parts: u64| {
        let scaled = u128::from(count) * u128::from(LENGTH * parts);
        usize::try_from(scaled.div_ceil(u128::from(most))).unwrap_or(0)
    };
    match marks {
        Marks::Ascii => "#".repeat(eighths(1)),
        Marks::Unicode => {
            let parts = eighths(8);
            let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
            format!("{}{}", "█".repeat(parts / 8), rest[parts % 8])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_few_and_reach_from_the_smallest_to_the_largest() {
        for (min, max) in [(1, 1), (10_000, 10_000), (10_000, 10_400), (1, 67_108_863)] {
            let bounds = bounds(min, max);
            assert!(!bounds.is_empty() && bounds.len() <= LINES, "{bounds:?}");
            assert_eq!(bounds.last(), Some(&max));
            assert!(bounds.is_sorted());
        }
    }

    #[test]
    fn the_longest_bar_is_full_and_one_sample_is_seen() {
        assert_eq!(bar(10, 10, Marks::Ascii).len(), 50);
        assert_eq!(bar(1, 1_000_000, Marks::Unicode), "▏");
        assert_eq!(bar(0, 10, Marks::Unicode), "");
    }
}
