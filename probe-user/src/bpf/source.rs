//! Decides where RTT samples come from: the best that kernel and rights give, or what was asked for.

use std::fs::File;

use aya::Ebpf;
use aya::programs::BtfTracePoint;
use probe_common::stats::{STATS, TRACING_CELL};

use super::attach;
use super::config::ObserverConfig;
use super::error::AttachError;
use super::features::Features;
use super::kernel::Kernel;
use super::load;
use super::stats::RttSource;
use super::trial;

const PROGRAM: &str = "joinprobe_rtt";
const TRACEPOINT: &str = "tcp_probe";

/// Tries what the kernel gives and sets the kernel side up for it; `None` when only the first sample will tell.
pub(super) fn choose(
    ebpf: &mut Ebpf,
    directory: &File,
    config: &ObserverConfig,
    features: &mut Features,
    kernel: &Kernel,
) -> Result<Option<RttSource>, AttachError> {
    let refused = |source: RttSource, reason| AttachError::Source {
        source_name: source.name(),
        reason,
    };
    match config.rtt_source {
        Some(RttSource::Smoothed) => return Ok(Some(RttSource::Smoothed)),
        Some(source @ RttSource::Reconstructed) => {
            return match reconstruct(ebpf, features, kernel) {
                Ok(()) => Ok(Some(source)),
                Err(reason) => Err(refused(source, reason)),
            };
        }
        Some(RttSource::Raw) | None => {}
    }
    let trial = trial::run(ebpf, directory, config.cgroup.is_some(), kernel);
    match (trial, config.rtt_source) {
        (Ok(true), _) => Ok(Some(RttSource::Raw)),
        (Ok(false), Some(source)) => {
            let reason = format!("kernel {kernel} does not hand them over (Linux 6.10 does)");
            Err(refused(source, reason))
        }
        (Err(reason), Some(source)) => Err(refused(source, reason)),
        (Ok(false), None) => Ok(Some(match reconstruct(ebpf, features, kernel) {
            Ok(()) => RttSource::Reconstructed,
            Err(reason) => {
                features.limitations.push(format!(
                    "RTT samples are smoothed, which hides peaks: kernel {kernel} does not hand over raw ones (Linux 6.10 \
                     does), and they cannot be reconstructed: {reason}"
                ));
                RttSource::Smoothed
            }
        })),
        (Err(untried), None) => {
            // Whatever comes is then taken for the best it can be.
            let fallback = match reconstruct(ebpf, features, kernel) {
                Ok(()) => "they are reconstructed if it does not".to_owned(),
                Err(reason) => {
                    format!(
                        "they are smoothed if it does not, for they cannot be reconstructed: {reason}"
                    )
                }
            };
            features.limitations.push(format!(
                "it could not be tried whether kernel {kernel} hands over raw RTT samples ({untried}); {fallback}"
            ));
            Ok(None)
        }
    }
}

/// Attaches the program that completes samples; or says why that cannot be.
fn reconstruct(ebpf: &mut Ebpf, features: &Features, kernel: &Kernel) -> Result<(), String> {
    features.reconstruction.as_ref().map_err(Clone::clone)?;
    let types = features.attach_points.as_types()?;
    let stats = attach::mapped(ebpf, "STATS", 1, STATS).map_err(|error| error.to_string())?;
    let program: &mut BtfTracePoint =
        attach::program(ebpf, PROGRAM).map_err(|error| error.to_string())?;
    program
        .load(TRACEPOINT, &types)
        .and_then(|()| program.attach())
        .map_err(|error| load::explain_program(error, kernel).to_string())?;
    stats.store(TRACING_CELL, 1);
    Ok(())
}
