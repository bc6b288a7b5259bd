//! `joinprobe watch`, and what `joinprobe run` shares with it, resolved.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;

use super::sources::Origins;
use super::{Common, ConfigError, DecisionChoice};
use crate::bpf::{Grouping, ObserverConfig, Scope};
use crate::cli::{GroupBy, ObserveArgs, OutputFormat, WatchArgs};
use crate::discover::Root;
use crate::exit::Contract;
use crate::output::{Textfile, check_folder};
use crate::probe::Resolver;
use crate::target::{Role, RoleName as _, parse};
use crate::verdict::Join;

/// How long the names to watch may take to resolve.
const NAME_PATIENCE: Duration = Duration::from_secs(10);

/// What a command that stays attached needs to know.
#[derive(Clone, Debug)]
pub struct ObserveConfig {
    /// Settings every command shares.
    pub common: Common,
    /// What is observed.
    pub observer: ObserverConfig,
    /// What kind of node is joining.
    pub join: Join,
    /// Time between reports.
    pub interval: Duration,
    /// How the verdict is reached.
    pub decision: DecisionChoice,
    /// Where this node's files are, which may tell the cluster's timing; `None` where they shall not be read.
    pub root: Option<Root>,
    /// Format of the reports.
    pub output: OutputFormat,
    /// Where metrics are served.
    pub listen: Option<SocketAddr>,
    /// Where metrics are written for node_exporter; ends in `.prom`.
    pub textfile: Option<PathBuf>,
    /// Where the interval log is appended.
    pub hlog: Option<PathBuf>,
}

/// Everything a watch needs to know.
#[derive(Clone, Debug)]
pub struct WatchConfig {
    /// What `run` needs too.
    pub observe: ObserveConfig,
    /// When it ends by itself.
    pub duration: Option<Duration>,
    /// The file whose appearance ends it.
    pub until_file: Option<PathBuf>,
    /// The verdict becomes the exit code.
    pub fail_on_verdict: bool,
}

impl WatchConfig {
    /// Resolves the arguments.
    ///
    /// # Errors
    /// Wrong usage; exit code 2.
    pub async fn resolve(
        common: Common,
        args: WatchArgs,
        origins: &Origins,
    ) -> Result<Self, ConfigError> {
        let contract = args.observe.output.contract();
        let mut observe = ObserveConfig::resolve(common, args.observe, origins).await?;
        observe.decision.leniency = contract.leniency(observe.decision.leniency);
        Ok(Self {
            duration: args.duration.into_iter().chain(args.max_duration).min(),
            until_file: args.until_file,
            // Whoever reads another contract's exit code reads it for the verdict.
            fail_on_verdict: args.fail_on_verdict || contract != Contract::Joinprobe,
            observe,
        })
    }
}

impl ObserveConfig {
    /// Resolves the arguments.
    ///
    /// # Errors
    /// Wrong usage; exit code 2.
    pub async fn resolve(
        common: Common,
        args: ObserveArgs,
        origins: &Origins,
    ) -> Result<Self, ConfigError> {
        if let Some(path) = &args.textfile {
            Textfile::new(path)?;
            check_folder("--textfile", path)?;
        }
        if let Some(path) = &args.hlog {
            check_folder("--hlog", path)?;
        }
        let observer = ObserverConfig {
            ports: ports(&args)?,
            addresses: addresses(&args.watch).await?,
            scope: if args.all_namespaces {
                Scope::AllNamespaces
            } else {
                Scope::OwnNamespace
            },
            grouping: match args.by {
                Some(GroupBy::Process) => Grouping::Processes,
                None => Grouping::Targets,
            },
            max_targets: args.max_targets,
            rtt_source: common.rtt_source,
            own_only: false,
            events: true,
            kernel_log: common.bpf_log,
            cgroup: common.cgroup.clone(),
        };
        let decision = DecisionChoice::resolve(args.decision, origins)?;
        Ok(Self {
            common,
            observer,
            join: if args.worker {
                Join::Worker
            } else {
                Join::ControlPlane
            },
            interval: args.interval,
            decision,
            root: (!args.no_discovery).then(|| Root::at(&args.root)),
            output: args.output,
            listen: args.listen,
            textfile: args.textfile,
            hlog: args.hlog,
        })
    }

    /// The port that stands for a role where an address does not.
    #[must_use]
    pub fn port_of(&self, role: Role) -> u16 {
        let watched = self.observer.ports.iter().find(|(_, known)| *known == role);
        watched.map_or(role.default_port(), |(port, _)| *port)
    }
}

fn ports(args: &ObserveArgs) -> Result<Vec<(u16, Role)>, ConfigError> {
    let mut ports: Vec<(u16, Role)> = Vec::new();
    for (role, numbers) in [
        (Role::EtcdClient, &args.etcd_port),
        (Role::EtcdPeer, &args.etcd_peer_port),
        (Role::ApiServer, &args.apiserver_port),
    ] {
        for &number in numbers {
            match ports.iter().find(|(known, _)| *known == number) {
                Some((_, known)) if *known != role => {
                    return Err(ConfigError::Contradiction(format!(
                        "port {number} is given as {} and as {}: a port has one role, use --watch HOST:PORT=ROLE for \
                         single addresses",
                        known.name(),
                        role.name()
                    )));
                }
                Some(_) => {}
                None => ports.push((number, role)),
            }
        }
    }
    Ok(ports)
}

/// Names are resolved as the probe's are.
async fn addresses(inputs: &[String]) -> Result<Vec<(SocketAddr, Role)>, ConfigError> {
    let mut targets = Vec::new();
    for input in inputs {
        let refuse = |reason: String| ConfigError::Watch {
            input: input.clone(),
            reason,
        };
        let (host, role) = input
            .rsplit_once('=')
            .ok_or_else(|| refuse("the role is missing".to_owned()))?;
        let role = Role::ALL
            .into_iter()
            .find(|known| known.name() == role)
            .ok_or_else(|| refuse(format!("there is no role `{role}`")))?;
        let target = parse(role, host).map_err(|error| refuse(error.to_string()))?;
        targets.push((input, target));
    }
    let mut addresses = Vec::new();
    if targets.is_empty() {
        return Ok(addresses);
    }
    let names = Resolver::from_system();
    let deadline = Instant::now() + NAME_PATIENCE;
    for (input, target) in targets {
        let found = names.resolve(&target, deadline).await;
        let found = found.map_err(|failure| ConfigError::WatchedName {
            input: input.clone(),
            reason: failure.text,
        })?;
        let targets = found.targets.into_iter();
        addresses.extend(targets.filter_map(|found| Some((found.address?, found.spec.role))));
    }
    Ok(addresses)
}
