//! How long a preflight takes, against the round-trip time.

use std::time::Duration;

use anyhow::{Context, Result};
use joinprobe_lab::Lab;

use super::Bench;
use super::figure::{Figure, median};

/// Round-trip times in milliseconds, from next door to beyond every limit.
const RTTS_MS: [u32; 6] = [1, 5, 20, 50, 100, 150];

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let lab = Lab::builder().members(3).start()?;
    let mut times = vec![Vec::new(); RTTS_MS.len()];
    for _ in 0..bench.rounds {
        for (rtt, times) in RTTS_MS.iter().zip(&mut times) {
            lab.set_rtt(Duration::from_millis(u64::from(*rtt)));
            let args = lab.preflight_args();
            let finished =
                lab.run_joinprobe(args.into_iter().chain(["-o".into(), "json".into()]))?;
            finished.report().context("no verdict")?;
            times.push(finished.elapsed.as_secs_f64());
        }
    }
    let points: Vec<(f64, f64)> = RTTS_MS
        .iter()
        .zip(&times)
        .map(|(rtt, times)| (f64::from(*rtt) / 1e3, median(times)))
        .collect();
    let mut figures: Vec<Figure> = RTTS_MS
        .iter()
        .zip(times)
        .map(|(rtt, times)| Figure::new(format!("preflight, four targets at {rtt} ms"), "s", times))
        .collect();
    let (slope, constant) = line(&points);
    figures.push(Figure::once(
        "preflight, fitted: round-trip times",
        "x RTT",
        slope,
    ));
    figures.push(Figure::once("preflight, fitted: constant", "s", constant));
    // Two lines: one is below the other between two ends if it is so at both.
    for (rtt, _) in [points.first(), points.last()].into_iter().flatten() {
        figures.push(
            Figure::once(
                format!("preflight, fitted line at {} ms", rtt * 1e3),
                "s",
                slope * rtt + constant,
            )
            .at_most(21.0 * rtt + 0.35),
        );
    }
    Ok(figures)
}

/// The least-squares line through points: slope and value at 0.
fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let n = points.iter().map(|_| 1.0).sum::<f64>();
    let (x, y) = points
        .iter()
        .fold((0.0, 0.0), |(a, b), (x, y)| (a + x / n, b + y / n));
    let (xy, xx) = points.iter().fold((0.0, 0.0), |(a, b), (px, py)| {
        (a + (px - x) * (py - y), b + (px - x) * (px - x))
    });
    let slope = xy / xx;
    (slope, y - slope * x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_through_points_on_a_line() {
        let (slope, constant) = line(&[(0.0, 1.0), (1.0, 3.0), (3.0, 7.0)]);
        assert!((slope - 2.0).abs() < 1e-9);
        assert!((constant - 1.0).abs() < 1e-9);
    }
}
