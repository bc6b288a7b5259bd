//! What the metrics endpoint says at one moment, in a form that is small and quickly encoded.

use std::time::SystemTime;

use super::buckets::Buckets;
use crate::output::{
    Connections, EtcdProbeReport, IntervalReport, MeasuredReport, ObserverReport, ProbeStages,
    Report, TargetReport,
};

/// Values of all metrics after one report.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    pub(super) targets: Vec<Target>,
    pub(super) probes: Vec<Probe>,
    /// The run's verdict, or the last interval's.
    pub(super) verdict: Option<&'static str>,
    pub(super) observer: ObserverReport,
    pub(super) node: String,
    /// When the report was made; `None` before the first.
    pub(super) time: Option<SystemTime>,
}

/// One target's cumulative values.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) labels: Labels,
    /// By measure name; measures without samples are absent.
    pub(super) histograms: Vec<(&'static str, Buckets)>,
    pub(super) connections: Connections,
    pub(super) syn_retransmits: u64,
    pub(super) retransmits: u64,
    pub(super) segments_out: u64,
    /// Connections from before that are observed.
    pub(super) adopted: u64,
    /// Those that are only sampled.
    pub(super) sampled: Option<Sampled>,
    /// The verdict of the last interval in which the target saw traffic, or of the run.
    pub(super) verdict: Option<&'static str>,
}

/// Connections from before that are only sampled.
#[derive(Clone, Debug)]
pub(super) struct Sampled {
    pub(super) open: u64,
    pub(super) smoothed: Buckets,
    pub(super) minimum: Buckets,
}

/// Stage times of our own connection, seconds.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    pub(super) labels: Labels,
    pub(super) stages: Vec<(&'static str, f64)>,
}

/// The labels of every series about a target. Never client ports or process ids: their number has no bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Labels {
    pub(super) role: &'static str,
    pub(super) target: String,
    pub(super) side: &'static str,
    /// Where processes are told apart and this one is known; their number is bounded as that of targets is.
    pub(super) process: Option<String>,
}

impl Labels {
    fn of(measured: &MeasuredReport) -> Self {
        Self {
            role: measured.role,
            target: measured.target.clone(),
            side: measured.side,
            process: measured.process_name().map(str::to_owned),
        }
    }

    /// Those of the target, whatever the process.
    pub(super) fn of_target(&self) -> Self {
        Self {
            process: None,
            ..self.clone()
        }
    }

    fn are_of(&self, target: &MeasuredReport) -> bool {
        (self.role, self.target.as_str(), self.side)
            == (target.role, target.target.as_str(), target.side)
    }
}

impl Snapshot {
    /// The state after an interval; what the interval is silent about is taken over from `before`.
    pub(super) fn of_interval(report: &IntervalReport, before: &Self) -> Self {
        let mut targets = targets(report.totals.iter());
        for target in &mut targets {
            let judged = report
                .targets
                .iter()
                .find(|judged| target.labels.are_of(&judged.measured));
            target.verdict = judged.map(|judged| judged.verdict).or_else(|| {
                let earlier = before.targets.iter();
                earlier
                    .filter(|old| old.labels == target.labels)
                    .find_map(|old| old.verdict)
            });
        }
        let probes = probes(&report.targets, None);
        Self {
            targets,
            probes: if probes.is_empty() {
                before.probes.clone()
            } else {
                probes
            },
            verdict: Some(report.verdict),
            observer: report.observer.clone(),
            node: report.node.clone(),
            time: Some(report.time.0),
        }
    }

    /// The state after a run.
    pub(super) fn of_run(report: &Report, before: &Self) -> Self {
        let mut targets = targets(report.targets.iter().map(|judged| &judged.measured));
        for target in &mut targets {
            let judged = report.targets.iter();
            target.verdict = judged
                .filter(|judged| target.labels.are_of(&judged.measured))
                .max_by_key(|judged| judged.worst)
                .map(|judged| judged.verdict);
        }
        let probes = probes(&report.targets, report.etcd_probe.as_ref());
        Self {
            targets,
            probes: if probes.is_empty() {
                before.probes.clone()
            } else {
                probes
            },
            verdict: Some(report.verdict),
            observer: report.observer.clone(),
            node: report.node.clone(),
            time: Some(report.time.0),
        }
    }
}

/// One [`Target`] for each set of labels: a series may be exposed only once, but the same address can be met in several
/// network namespaces or under several host names.
fn targets<'a>(measured: impl Iterator<Item = &'a MeasuredReport>) -> Vec<Target> {
    let mut groups: Vec<(Labels, Vec<&MeasuredReport>)> = Vec::new();
    for report in measured {
        let labels = Labels::of(report);
        match groups.iter_mut().find(|(known, _)| *known == labels) {
            Some((_, group)) => group.push(report),
            None => groups.push((labels, vec![report])),
        }
    }
    groups
        .into_iter()
        .map(|(labels, group)| Target::new(labels, &group))
        .collect()
}

impl Target {
    fn new(labels: Labels, group: &[&MeasuredReport]) -> Self {
        let sum = |of: fn(&MeasuredReport) -> u64| group.iter().map(|report| of(report)).sum();
        Self {
            labels,
            histograms: histograms(group),
            connections: group.iter().map(|report| report.connections).sum(),
            syn_retransmits: sum(|report| report.syn_retransmits),
            retransmits: sum(|report| report.retransmits),
            segments_out: sum(|report| report.segments_out),
            adopted: sum(|report| report.adopted),
            sampled: sampled(group),
            verdict: None,
        }
    }
}

fn sampled(group: &[&MeasuredReport]) -> Option<Sampled> {
    let mut reports = group.iter().filter_map(|report| report.sampled.as_ref());
    let first = reports.next()?;
    let mut open = first.open;
    let [mut smoothed, mut minimum] =
        [&first.smoothed, &first.minimum].map(|report| report.distribution.clone());
    for report in reports {
        open += report.open;
        // All have the kernel side's range, so adding cannot fail.
        let _ = smoothed.add(&report.smoothed.distribution);
        let _ = minimum.add(&report.minimum.distribution);
    }
    Some(Sampled {
        open,
        smoothed: Buckets::new(&smoothed),
        minimum: Buckets::new(&minimum),
    })
}

fn histograms(group: &[&MeasuredReport]) -> Vec<(&'static str, Buckets)> {
    let Some((first, rest)) = group.split_first() else {
        return Vec::new();
    };
    let all = first.measures().map(|(name, report)| {
        let distribution = &report.distribution;
        if rest.is_empty() {
            return (name, Buckets::new(distribution));
        }
        let mut sum = distribution.clone();
        for other in rest {
            let same = other.measures().filter(|(other, _)| *other == name);
            for (_, report) in same {
                // Both have the kernel side's range, so adding cannot fail.
                let _ = sum.add(&report.distribution);
            }
        }
        (name, Buckets::new(&sum))
    });
    all.filter(|(_, buckets)| buckets.count() > 0).collect()
}

fn probes(targets: &[TargetReport], etcd: Option<&EtcdProbeReport>) -> Vec<Probe> {
    targets
        .iter()
        .filter_map(|target| {
            let labels = Labels::of(&target.measured);
            let server = etcd
                .filter(|read| read.target == labels.target)
                .and_then(|read| read.server_us);
            let stages = stages(target.probe.as_ref()?, server);
            (!stages.is_empty()).then_some(Probe { labels, stages })
        })
        .collect()
}

fn stages(probe: &ProbeStages, server_us: Option<u64>) -> Vec<(&'static str, f64)> {
    [
        ("dns", probe.dns_us),
        ("tcp", probe.tcp_us),
        ("tls", probe.tls_us),
        ("request", probe.request_us),
        ("server", server_us),
    ]
    .into_iter()
    .filter_map(|(stage, micros)| {
        Some((
            stage,
            std::time::Duration::from_micros(micros?).as_secs_f64(),
        ))
    })
    .collect()
}
