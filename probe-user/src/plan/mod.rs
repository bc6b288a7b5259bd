//! What is going to be measured, and with what: what was named, completed by what is found on this node and, where
//! that was asked for, by what the cluster itself says.

mod apiserver;
mod certificates;
mod error;
mod etcd;
mod online;
mod path_end;
mod services;
mod trust;

use tokio::time::Instant;

pub use certificates::server_certificate;
pub use error::PlanError;
pub use path_end::path_end;
pub use trust::Trust;

use crate::config::{Credentials, DiscoveryChoice, TimingChoice};
use crate::discover::{Discovery, Found, FoundTarget, NodeKind, discover};
use crate::probe::Resolver;
use crate::target::{RoleName as _, TargetSpec};
use crate::tls::CredentialError;
use crate::verdict::{Finding, FindingState, Join};

/// What was named, and what may be looked for.
pub struct Request<'a> {
    /// Targets that were named; when there is any, nothing else is measured.
    pub targets: &'a [Found<TargetSpec>],
    /// Domains whose SRV records name etcd members.
    pub services: &'a [String],
    /// The node joins as a worker, whatever its files say.
    pub worker: bool,
    /// Credentials that were named.
    pub credentials: &'a Credentials,
    /// What may be looked for.
    pub discovery: &'a DiscoveryChoice,
    /// The cluster's timing, as far as it was named.
    pub timing: &'a TimingChoice,
    /// Until when an API server that is not ready yet is asked again.
    pub retry_until: Instant,
    /// Until when each question to the cluster is answered or given up.
    pub patience: std::time::Duration,
}

/// What is going to be measured, and with what.
pub struct Plan {
    /// The targets, each with where it was found.
    pub targets: Vec<FoundTarget>,
    /// Whom to trust and what to show.
    pub trust: Trust,
    /// What is joining.
    pub join: Join,
    /// The cluster's timing.
    pub timing: TimingChoice,
    /// etcd's members are known to run where the API servers do.
    pub stacked: bool,
    /// What was found out on the way.
    pub findings: Vec<Finding>,
    /// Why the API server that answers cannot be the one that was meant.
    pub refused: Option<String>,
}

impl Plan {
    /// Makes a plan. Opens connections only for questions that the files leave open, one each.
    ///
    /// # Errors
    /// A file is no good, credentials that were named are unusable, or there is nothing to measure.
    pub async fn make(request: &Request<'_>) -> Result<Self, PlanError> {
        let choice = request.discovery;
        let found = if choice.files {
            discover(&choice.root, &choice.hints)?
        } else {
            Discovery::default()
        };
        let mut planning = Planning::new(request, &found);
        services::add(&mut planning).await;
        let api = apiserver::trust(&mut planning).await?;
        if choice.etcd {
            online::etcd_pods(&mut planning, &api).await;
        }
        let etcd = etcd::trust(&mut planning)?;
        if choice.members {
            online::members(&mut planning, &etcd).await;
        }
        if planning.targets.is_empty() {
            return Err(PlanError::no_targets(
                &choice.hints,
                &found,
                &planning.findings,
            ));
        }
        let Planning {
            targets,
            findings,
            refused,
            ..
        } = planning;
        Ok(Self {
            targets,
            trust: Trust {
                etcd,
                apiserver: api,
            },
            join: join(request, &found),
            stacked: found.external_etcd.is_none()
                && request.services.is_empty()
                && (choice.etcd
                    || found
                        .targets
                        .iter()
                        .any(|target| target.spec.role.is_etcd())),
            timing: TimingChoice {
                heartbeat: request.timing.heartbeat.clone().or(found.heartbeat),
                election: request.timing.election.clone().or(found.election),
            },
            findings,
            refused,
        })
    }
}

fn join(request: &Request<'_>, found: &Discovery) -> Join {
    match found.node {
        _ if request.worker => Join::Worker,
        NodeKind::JoiningWorker | NodeKind::Worker => Join::Worker,
        _ => Join::ControlPlane,
    }
}

/// A plan under way.
struct Planning<'a> {
    request: &'a Request<'a>,
    found: &'a Discovery,
    targets: Vec<FoundTarget>,
    findings: Vec<Finding>,
    refused: Option<String>,
    resolver: Resolver,
}

impl<'a> Planning<'a> {
    fn new(request: &'a Request<'a>, found: &'a Discovery) -> Self {
        let named = request.targets.iter().map(|target| FoundTarget {
            spec: target.value.clone(),
            origins: vec![target.origin.clone()],
            tentative: false,
            server_name: None,
        });
        let mut planning = Self {
            request,
            found,
            targets: named.collect(),
            findings: Vec::new(),
            refused: None,
            resolver: Resolver::from_system(),
        };
        planning.introduce();
        if planning.targets.is_empty() {
            planning.targets.clone_from(&found.targets);
        }
        planning
    }

    /// What kind of node this is, and what is odd about its files.
    fn introduce(&mut self) {
        if let Some(origin) = &self.found.node_origin {
            let text = format!("this is {}, says {origin}", self.found.node.words());
            self.say("node", FindingState::Pass, text);
        }
        let left_out = self
            .found
            .targets
            .iter()
            .filter(|found| !self.targets.iter().any(|named| named.spec == found.spec))
            .count();
        if !self.targets.is_empty() && left_out > 0 {
            let text = format!(
                "targets were named, so {left_out} more that this node's files name are not measured"
            );
            self.say("node", FindingState::Skipped, text);
        }
        for note in &self.found.notes {
            let state = if note.warns {
                FindingState::Warn
            } else {
                FindingState::Skipped
            };
            self.say("discovery", state, note.text.clone());
        }
    }

    fn say(&mut self, id: &'static str, state: FindingState, text: impl Into<String>) {
        self.findings.push(Finding::plain(id, state, text));
    }

    fn add(&mut self, target: Found<TargetSpec>) {
        match self
            .targets
            .iter_mut()
            .find(|known| known.spec == target.value)
        {
            Some(known) => {
                known.tentative = false;
                known.origins.push(target.origin);
            }
            None => self.targets.push(FoundTarget {
                spec: target.value,
                origins: vec![target.origin],
                tentative: false,
                server_name: None,
            }),
        }
    }

    /// When a question that is asked now has to be answered.
    fn deadline(&self) -> Instant {
        Instant::now() + self.request.patience
    }

    /// A file that was named is unusable: an error. One that was found is not: a warning.
    fn warn(&mut self, id: &'static str, error: &CredentialError) {
        self.say(id, FindingState::Warn, error.to_string());
    }
}
