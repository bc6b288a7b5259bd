//! One simulated preflight: the code that judges real ones, fed with simulated samples.

use probe_user::histogram;
use probe_user::measure::{Counters, Distributions, Opener, TargetMeasurement};
use probe_user::probe::ProbeReport;
use probe_user::target::{Role, Side, Target, TargetSpec};
use probe_user::verdict::{
    Decisions, Limits, Policy, RunPolicy, TargetVerdict, Verdict, combine, needs_more,
};

use crate::samples::Path;

/// What is the same for every preflight of a point.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) limits: Limits,
    pub(crate) policy: Policy,
    pub(crate) targets: u32,
    /// Path samples each connection yields.
    pub(crate) samples: usize,
}

/// What one preflight came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    /// Each target's verdict and how many connections it took.
    pub(crate) targets: Vec<(Verdict, u32)>,
    /// Whether the mean of the first five samples of any target was beyond the fail limit.
    pub(crate) five_pings_fail: bool,
}

/// Runs one preflight over `paths`, one a target, with every look a real one takes.
pub(crate) fn run(plan: &Plan, paths: &mut [Path], fail_limit_us: u64) -> Outcome {
    let mut five_pings_fail = false;
    let mut looks = Vec::new();
    let mut judged: Vec<(TargetMeasurement, TargetVerdict)> = Vec::new();
    for path in paths {
        let mut measured = unmeasured();
        let mut connections = 0;
        let mut decisions = Decisions::default();
        let verdict = loop {
            connections += 1;
            // A further connection continues the path's own sequence: correlation does not end with a connection.
            add_connection(&mut measured, path, plan.samples);
            let verdict = decisions.judge(&measured, &plan.limits, &plan.policy);
            if !needs_more(&verdict) || connections >= plan.policy.looks {
                break verdict;
            }
        };
        let first = measured
            .probe
            .as_ref()
            .map_or(&[][..], |probe| &probe.path_sequence);
        let five: u64 = first.iter().take(5).map(|&sample| u64::from(sample)).sum();
        five_pings_fail |= five > 5 * fail_limit_us;
        looks.push((verdict.verdict, connections));
        judged.push((measured, verdict));
    }
    Outcome {
        verdict: combine(&judged, &RunPolicy::default()).verdict,
        targets: looks,
        five_pings_fail,
    }
}

fn unmeasured() -> TargetMeasurement {
    TargetMeasurement {
        opener: Opener::default(),
        sampled: None,
        target: Target {
            spec: TargetSpec {
                role: Role::EtcdClient,
                host: "simulated".to_owned(),
                port: 2379,
            },
            address: None,
        },
        side: Side::Client,
        distributions: Distributions::default(),
        counters: Counters::default(),
        probe: Some(ProbeReport::new(None)),
    }
}

fn add_connection(measured: &mut TargetMeasurement, path: &mut Path, samples: usize) {
    let Some(probe) = &mut measured.probe else {
        return;
    };
    for _ in 0..samples {
        let sample = path.sample();
        probe.path_sequence.push(sample);
        histogram::record(&mut measured.distributions.path, u64::from(sample), 1);
    }
}
