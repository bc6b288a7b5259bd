//! `joinprobe preflight`: probes every target once, at the same time, and gives a verdict.

mod error;
mod judge;
mod marker;
mod memory;
mod round;
mod trace;

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

pub use error::PreflightError;
pub use memory::Memory;

use crate::bpf::{KernelLog, Observer, ObserverConfig};
use crate::cli::progress::Progress;
use crate::cli::signal;
use crate::config::PreflightConfig;
use crate::exit::Exit;
use crate::measure::TargetMeasurement;
use crate::output::{ObserverReport, Report};
use crate::plan::{Plan, Request};
use round::Rounds;

/// How long a question to the cluster may take before anything is measured.
const PATIENCE: Duration = Duration::from_secs(5);

/// How a preflight ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Everything that was found.
    pub report: Report,
    /// The exit code that follows from it.
    pub exit: Exit,
}

/// Runs a preflight.
///
/// # Errors
/// Nothing could be measured, or the credentials that were given are unusable. A target that cannot be reached is no
/// error but a finding.
pub async fn run(config: &PreflightConfig) -> Result<Outcome, PreflightError> {
    let started = Instant::now();
    let request = Request {
        targets: &config.targets,
        services: &config.discovery.services,
        worker: config.worker,
        credentials: &config.credentials,
        discovery: &config.discovery,
        timing: &config.decision.timing,
        retry_until: started + config.retry_for,
        patience: config.timeout.min(PATIENCE),
    };
    let plan = tokio::select! {
        plan = Plan::make(&request) => plan?,
        signal = signal::interrupted() => {
            return Err(signal.map_or_else(PreflightError::Signals, PreflightError::Interrupted));
        }
    };
    let attaching = Instant::now();
    let mut observer = Observer::attach(&observer_config(config, &plan))?;
    let attached = Memory::of_this_process();
    log::info!("attached to {}", observer.hierarchy().path().display());
    for limitation in observer.limitations() {
        log::warn!("{limitation}");
    }
    let mut kernel_log = observer.kernel_log().unwrap_or_else(|error| {
        log::warn!("no lines of the kernel side: {error}");
        None
    });
    let progress = Progress::start(format!("probing {} targets", plan.targets.len()));
    // What loading the programs took is not the network's fault and must not shorten the servers' time to answer.
    let mut rounds = Rounds::new(config, &plan, started + attaching.elapsed());
    tokio::select! {
        () = rounds.run(&mut observer) => {}
        () = forward(&mut kernel_log) => {}
        signal = signal::interrupted() => {
            return Err(signal.map_or_else(PreflightError::Signals, PreflightError::Interrupted));
        }
    }
    drop(progress);
    if let Some(log) = &mut kernel_log {
        log.flush();
    }
    let measured = rounds.measurements(&observer);
    let verdict = judge::run(rounds.decisions(), config, &plan, &measured);
    let observer = observer_report(&observer, attached);
    let report = Report::of_run(
        &config.common.node,
        SystemTime::now(),
        started.elapsed(),
        &measured,
        &verdict,
        observer,
    );
    let mut report = with_origins(report, &measured, &plan);
    if config.trace {
        tokio::select! {
            () = trace::add(&mut report, &measured) => {}
            signal = signal::interrupted() => {
                return Err(signal.map_or_else(PreflightError::Signals, PreflightError::Interrupted));
            }
        }
    }
    Ok(Outcome {
        exit: Exit::of(verdict.verdict, config.leniency()),
        report,
    })
}

/// Passes the kernel side's lines on, for ever.
async fn forward(kernel_log: &mut Option<KernelLog>) {
    if let Some(log) = kernel_log
        && let Err(error) = log.forward().await
    {
        log::warn!("no more lines of the kernel side: {error}");
    }
    std::future::pending::<()>().await;
}

/// Says of each target where it was found.
fn with_origins(mut report: Report, measured: &[TargetMeasurement], plan: &Plan) -> Report {
    for (target, measured) in report.targets.iter_mut().zip(measured) {
        target.found_in = plan
            .targets
            .iter()
            .filter(|planned| planned.spec == measured.target.spec)
            .flat_map(|planned| &planned.origins)
            .map(ToString::to_string)
            .collect();
    }
    report
}

fn observer_config(config: &PreflightConfig, plan: &Plan) -> ObserverConfig {
    let targets = u32::try_from(plan.targets.len()).unwrap_or(u32::MAX);
    ObserverConfig {
        // A name may stand for several addresses, each of which is a target of its own.
        max_targets: targets
            .saturating_mul(2)
            .max(ObserverConfig::default().max_targets),
        rtt_source: config.common.rtt_source,
        own_only: true,
        kernel_log: config.common.bpf_log,
        cgroup: config.common.cgroup.clone(),
        ..ObserverConfig::default()
    }
}

/// What is said about the observer in every report.
pub(crate) fn observer_report(observer: &Observer, attached: Memory) -> ObserverReport {
    let stats = observer.stats();
    ObserverReport {
        kernel: observer.kernel_release().to_owned(),
        rtt_source: observer
            .rtt_source()
            .map_or("none", |source| source.name())
            .to_owned(),
        events_lost: stats.events_lost,
        events_suppressed: stats.events_suppressed,
        flows_seen: stats.flows_seen,
        flows_untracked: stats.flows_untracked,
        raw_disagreements: stats.raw_disagreements,
        slots_used: u64::from(stats.slots_used),
        slots_exhausted: stats.slots_exhausted,
        rss_bytes: attached.resident,
        rss_peak_bytes: Memory::of_this_process().peak,
        cgroup: observer.hierarchy().path().display().to_string(),
    }
}
