//! Rounds of connections: all targets at once, then the failed ones again while `--retry-for` lasts, then more samples
//! for medians that are still undecided.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use super::judge;
use super::marker::SlotMarker;
use crate::bpf::Observer;
use crate::config::PreflightConfig;
use crate::measure::{Counters, Distributions, Opener, TargetMeasurement};
use crate::plan::Plan;
use crate::probe::{
    EtcdRead, Extent, Pacing, ProbeContext, ProbeFailure, ProbeReport, Resolver, Stage, probe,
    unless_hasty,
};
use crate::target::{Side, Target, TargetSpec};
use crate::verdict::{Decisions, needs_more};

/// Pause between two attempts at a failed target.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// One target's state over the rounds.
struct Entry {
    target: Target,
    dns: Option<Duration>,
    slot: Option<u32>,
    attempts: u32,
    report: Option<ProbeReport>,
}

impl Entry {
    fn failed(&self) -> bool {
        self.report
            .as_ref()
            .is_none_or(|report| report.failure.is_some())
    }
}

/// The run's connections.
pub(super) struct Rounds<'a> {
    config: &'a PreflightConfig,
    plan: &'a Plan,
    started: Instant,
    entries: Vec<Entry>,
    decisions: Decisions,
}

impl<'a> Rounds<'a> {
    pub(super) fn new(config: &'a PreflightConfig, plan: &'a Plan, started: Instant) -> Self {
        Self {
            config,
            plan,
            started,
            entries: Vec::new(),
            decisions: Decisions::default(),
        }
    }

    /// What the looks so far decided.
    pub(super) fn decisions(&mut self) -> &mut Decisions {
        &mut self.decisions
    }

    /// Makes every connection of the run.
    pub(super) async fn run(&mut self, observer: &mut Observer) {
        self.entries = self.resolve_all().await;
        self.attempt(observer).await;
        let retry_until = self.started + self.config.retry_for;
        while self.entries.iter().any(Entry::failed) && Instant::now() + RETRY_PAUSE < retry_until {
            sleep(RETRY_PAUSE).await;
            self.resolve_again().await;
            self.attempt(observer).await;
        }
        for _ in 1..self.config.max_connections {
            if !self.look_again(observer).await {
                break;
            }
        }
    }

    /// What is known about every target.
    pub(super) fn measurements(&self, observer: &Observer) -> Vec<TargetMeasurement> {
        self.entries
            .iter()
            .map(|entry| measurement(entry, observer))
            .collect()
    }

    /// When a connection started now has to be done with.
    fn deadline(&self) -> Instant {
        let last = self.started + self.config.retry_for + self.config.timeout;
        last.min(Instant::now() + self.config.timeout)
    }

    async fn resolve_all(&self) -> Vec<Entry> {
        let (resolver, deadline) = (Resolver::from_system(), self.deadline());
        let found = self
            .plan
            .targets
            .iter()
            .map(|target| entries(&resolver, &target.spec, 0, deadline));
        distinct(join_all(found).await.into_iter().flatten())
    }

    async fn resolve_again(&mut self) {
        // Read anew: /etc/resolv.conf may have been written in the meantime.
        let (resolver, deadline) = (Resolver::from_system(), self.deadline());
        let again = std::mem::take(&mut self.entries)
            .into_iter()
            .map(async |old| {
                if old.target.address.is_some() {
                    vec![old]
                } else {
                    entries(&resolver, &old.target.spec, old.attempts, deadline).await
                }
            });
        self.entries = distinct(join_all(again).await.into_iter().flatten());
    }

    /// Probes every target that has no good report yet, all at the same time.
    async fn attempt(&mut self, observer: &mut Observer) {
        for entry in self.entries.iter_mut().filter(|entry| entry.failed()) {
            match entry.slot {
                Some(slot) => observer.reset_slot(slot),
                None => entry.slot = observer.new_slot(),
            }
        }
        // A read that failed may be sent again, one that was answered not.
        let answered = self.entries.iter().any(|entry| {
            entry
                .report
                .as_ref()
                .is_some_and(|report| report.etcd.is_some())
        });
        let etcd_read = if self.config.probe_each_member {
            EtcdRead::each_member()
        } else if answered {
            EtcdRead::none()
        } else {
            EtcdRead::once()
        };
        let deadline = self.deadline();
        let (config, plan) = (self.config, self.plan);
        let observer = &*observer;
        join_all(
            self.entries
                .iter_mut()
                .filter(|entry| entry.failed())
                .map(|entry| {
                    let etcd_read = &etcd_read;
                    async move {
                        entry.attempts += 1;
                        let report = connect(
                            config,
                            plan,
                            observer,
                            entry,
                            etcd_read,
                            Extent::Full,
                            deadline,
                        )
                        .await;
                        if let Some(mut report) = report {
                            report.attempts = entry.attempts;
                            entry.report = Some(report);
                        }
                    }
                }),
        )
        .await;
    }

    /// Takes more samples where a fail limit on a median is undecided; `false` when there is nothing left to do.
    async fn look_again(&mut self, observer: &Observer) -> bool {
        let (config, plan, deadline) = (self.config, self.plan, self.deadline());
        let targets = self.entries.len();
        let decisions = &mut self.decisions;
        let undecided: Vec<&mut Entry> = self
            .entries
            .iter_mut()
            .filter(|entry| {
                let measured = measurement(entry, observer);
                let judged = judge::target(decisions, config, plan, &measured, targets);
                !entry.failed() && needs_more(&judged)
            })
            .collect();
        if undecided.is_empty() || Instant::now() >= deadline {
            return false;
        }
        let etcd_read = EtcdRead::none();
        join_all(undecided.into_iter().map(|entry| {
            let etcd_read = &etcd_read;
            async move {
                let more = connect(
                    config,
                    plan,
                    observer,
                    entry,
                    etcd_read,
                    Extent::PathOnly,
                    deadline,
                )
                .await;
                entry.attempts += 1;
                if let (Some(more), Some(report)) = (more, entry.report.as_mut()) {
                    report.path_sequence.extend(more.path_sequence);
                    report.attempts = entry.attempts;
                }
            }
        }))
        .await;
        true
    }
}

/// Two names for one address of one role are one target, which gets one connection.
fn distinct(all: impl Iterator<Item = Entry>) -> Vec<Entry> {
    let mut kept: Vec<Entry> = Vec::new();
    for entry in all {
        let same = |known: &Entry| {
            known.target.address.is_some()
                && known.target.address == entry.target.address
                && known.target.spec.role == entry.target.spec.role
        };
        if !kept.iter().any(same) {
            kept.push(entry);
        }
    }
    kept
}

/// A target's addresses, one entry each; one without an address when the name does not resolve.
async fn entries(
    resolver: &Resolver,
    spec: &TargetSpec,
    attempts: u32,
    deadline: Instant,
) -> Vec<Entry> {
    let begun = Instant::now();
    match resolver.resolve(spec, deadline).await {
        Ok(found) => found
            .targets
            .into_iter()
            .map(|target| Entry {
                target,
                dns: found.took,
                slot: None,
                attempts,
                report: None,
            })
            .collect(),
        Err(failure) => {
            let failure = unless_hasty(failure, spec, begun, deadline);
            let target = Target {
                spec: spec.clone(),
                address: None,
            };
            let report = Some(ProbeReport::failed(None, failure));
            vec![Entry {
                target,
                dns: None,
                slot: None,
                attempts: attempts + 1,
                report,
            }]
        }
    }
}

async fn connect(
    config: &PreflightConfig,
    plan: &Plan,
    observer: &Observer,
    entry: &Entry,
    etcd_read: &EtcdRead,
    extent: Extent,
    deadline: Instant,
) -> Option<ProbeReport> {
    let role = entry.target.spec.role;
    entry.target.address?;
    let Some(slot) = entry.slot else {
        return Some(ProbeReport::failed(
            entry.dns,
            ProbeFailure {
                stage: Stage::Tcp,
                result: "not_measured",
                text: format!(
                    "{} was not measured: more addresses than histogram slots",
                    entry.target
                ),
            },
        ));
    };
    let marker = SlotMarker {
        probes: observer.own_probes(),
        slot,
        role,
    };
    let context = ProbeContext {
        marker: &marker,
        tls: plan.trust.of(&entry.target.spec),
        etcd_read,
        pacing: if config.pacing {
            Pacing::default()
        } else {
            Pacing::off()
        },
        extent,
        dns: entry.dns,
        deadline,
    };
    Some(probe(&entry.target, &context).await)
}

fn measurement(entry: &Entry, observer: &Observer) -> TargetMeasurement {
    let (distributions, counters) = entry.slot.map_or_else(
        || (Distributions::default(), Counters::default()),
        |slot| {
            let counts = observer.read_slot(slot);
            (counts.distributions(), counts.counters())
        },
    );
    TargetMeasurement {
        opener: Opener::default(),
        sampled: None,
        target: entry.target.clone(),
        side: Side::Client,
        distributions,
        counters,
        probe: entry.report.clone(),
    }
}
