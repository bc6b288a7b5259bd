//! Hands the measurements to the verdict.

use super::limits;
use crate::config::PreflightConfig;
use crate::measure::TargetMeasurement;
use crate::verdict::{self, Join, Policy, RunPolicy, RunVerdict, TargetVerdict};

/// How decisive the run must be.
pub(super) fn policy(config: &PreflightConfig, targets: usize) -> Policy {
    Policy {
        looks: config.max_connections,
        targets: u32::try_from(targets).unwrap_or(u32::MAX).max(1),
        ..Policy::default()
    }
}

/// One target's verdict.
pub(super) fn target(
    config: &PreflightConfig,
    measured: &TargetMeasurement,
    targets: usize,
) -> TargetVerdict {
    let limits = limits::resolve(config.timing);
    verdict::judge_target(measured, &limits, &policy(config, targets))
}

/// The run's verdict.
pub(super) fn run(config: &PreflightConfig, measured: &[TargetMeasurement]) -> RunVerdict {
    let judged: Vec<_> = measured
        .iter()
        .map(|measurement| {
            (
                measurement.clone(),
                target(config, measurement, measured.len()),
            )
        })
        .collect();
    let join = if config.worker {
        Join::Worker
    } else {
        Join::ControlPlane
    };
    verdict::combine(
        &judged,
        &RunPolicy {
            join,
            allow_unreachable: config.allow_unreachable,
        },
    )
}
