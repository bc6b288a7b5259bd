//! The RTT samples of one simulated path.

use std::f64::consts::TAU;

/// Share of samples that are ten times as long.
const OUTLIERS: f64 = 0.05;
const OUTLIER_FACTOR: f64 = 10.0;
/// Sigma of the lognormal part.
const SIGMA: f64 = 0.5;

/// A path: a floor of half the median, a lognormal part on top, and outliers. Its median is exact: outliers included,
/// half of the samples are below it.
#[derive(Debug)]
pub(crate) struct Path {
    random: fastrand::Rng,
    /// AR(1) coefficient of the Gaussian under the lognormal; 0 for independent samples.
    correlation: f64,
    gaussian: f64,
    floor_us: f64,
    log_scale: f64,
}

impl Path {
    pub(crate) fn new(median_us: f64, correlation: f64, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let gaussian = normal(&mut random);
        Self {
            random,
            correlation,
            gaussian,
            floor_us: median_us / 2.0,
            log_scale: (median_us / 2.0).ln() - SIGMA * MEDIAN_SHIFT,
        }
    }

    /// The next sample, microseconds.
    pub(crate) fn sample(&mut self) -> u32 {
        let value = self.floor_us + (self.log_scale + SIGMA * self.gaussian).exp();
        let fresh = (1.0 - self.correlation * self.correlation).sqrt();
        self.gaussian = self.correlation * self.gaussian + fresh * normal(&mut self.random);
        let value = if self.random.f64() < OUTLIERS {
            value * OUTLIER_FACTOR
        } else {
            value
        };
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float to integer cast saturates, and microseconds need no rounding"
        )]
        let whole = value as u32;
        whole
    }
}

/// Outliers all lie above the median, so it is the 0.5 / 0.95 quantile of the rest: this many sigmas above the
/// Gaussian's own median.
const MEDIAN_SHIFT: f64 = 0.066_011_812;

fn normal(random: &mut fastrand::Rng) -> f64 {
    // Box and Muller; 1 - f64() keeps the logarithm away from 0.
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (TAU * random.f64()).cos()
}
