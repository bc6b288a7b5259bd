//! `joinprobe preflight`, resolved.

use std::path::PathBuf;
use std::time::Duration;

use super::sources::Origins;
use super::{Common, ConfigError, DecisionChoice};
use crate::cli::{OutputFormat, PreflightArgs, ProbingArgs};
use crate::discover::{Found, Hints, Root};
use crate::exit::Leniency;
use crate::target::{Role, TargetSpec, parse};

/// Files with trust and credentials; nothing is read yet.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// CA of etcd's certificates.
    pub etcd_ca: Option<PathBuf>,
    /// Client certificate and key for etcd; only together with the CA.
    pub etcd_client: Option<(PathBuf, PathBuf)>,
    /// Make a client certificate for etcd in memory where none is found and its CA's key is present.
    pub mint_etcd_client: bool,
    /// CA of the API server's certificate.
    pub apiserver_ca: Option<PathBuf>,
}

/// What is looked for beyond what was named.
#[derive(Clone, Debug, Default)]
pub struct DiscoveryChoice {
    /// Look at kubeadm's and Cluster API's files.
    pub files: bool,
    /// Where `/` is.
    pub root: Root,
    /// Files that were named.
    pub hints: Hints,
    /// Domains whose SRV records name etcd members.
    pub services: Vec<String>,
    /// Ask the API server for the etcd pods.
    pub etcd: bool,
    /// Ask etcd for its members.
    pub members: bool,
}

/// Everything a preflight needs to know.
#[derive(Clone, Debug)]
pub struct PreflightConfig {
    /// Settings every command shares.
    pub common: Common,
    /// What was named, in the order given: etcd clients, etcd peers, API servers; each once. Nothing else is measured
    /// then; when it is empty, what is discovered is.
    pub targets: Vec<Found<TargetSpec>>,
    /// What is looked for.
    pub discovery: DiscoveryChoice,
    /// The node joins as a worker, which needs no etcd.
    pub worker: bool,
    /// Trust and credentials.
    pub credentials: Credentials,
    /// Time for the whole run, retries aside.
    pub timeout: Duration,
    /// How long failed targets are tried again.
    pub retry_for: Duration,
    /// Most connections to one target: the further ones only while a median is undecided.
    pub max_connections: u32,
    /// Pace the ClientHello.
    pub pacing: bool,
    /// Trace the way to targets afterwards.
    pub trace: bool,
    /// Ask every etcd member instead of one.
    pub probe_each_member: bool,
    /// How the verdict is reached.
    pub decision: DecisionChoice,
    /// Unreachable etcd members that are tolerated.
    pub allow_unreachable: u32,
    /// Result format.
    pub output: OutputFormat,
}

impl PreflightConfig {
    /// What is made of verdicts that are neither pass nor fail, in the result format's own terms.
    #[must_use]
    pub fn leniency(&self) -> Leniency {
        self.output.contract().leniency(self.decision.leniency)
    }

    /// Resolves the arguments.
    ///
    /// # Errors
    /// Wrong usage; exit code 2.
    pub fn resolve(
        common: Common,
        args: PreflightArgs,
        origins: &Origins,
    ) -> Result<Self, ConfigError> {
        let PreflightArgs {
            probing: args,
            worker,
            root,
            no_discovery,
            decision,
            output,
        } = args;
        if no_discovery {
            needs_files(&args)?;
        }
        let targets = targets(&args, origins)?;
        if targets.is_empty() && no_discovery && args.etcd_srv.is_empty() {
            return Err(ConfigError::NoTargets);
        }
        let etcd_client = client_pair(&args)?;
        let decision = DecisionChoice::resolve(decision, origins)?;
        Ok(Self {
            common,
            targets,
            discovery: DiscoveryChoice {
                files: !no_discovery,
                root: Root::at(&root),
                hints: Hints {
                    join_config: args.join_config,
                    kubeconfig: args.kubeconfig,
                },
                services: args.etcd_srv,
                etcd: args.discover_etcd,
                members: args.discover_members,
            },
            worker,
            credentials: Credentials {
                etcd_client,
                etcd_ca: args.etcd_cacert,
                mint_etcd_client: args.etcd_mint_client_cert,
                apiserver_ca: args.apiserver_ca,
            },
            timeout: args.timeout,
            retry_for: args.retry_for,
            max_connections: args.max_connections,
            pacing: !args.no_pacing,
            trace: args.trace,
            probe_each_member: args.probe_each_member,
            decision,
            allow_unreachable: args.allow_unreachable,
            output,
        })
    }
}

/// What can only come from files that shall not be read.
fn needs_files(args: &ProbingArgs) -> Result<(), ConfigError> {
    let without_pair = args.etcd_cert.is_none() || args.etcd_key.is_none();
    let needs = [
        (
            args.join_config.is_some(),
            "--join-config",
            "names a file to look at; leave one of them out",
        ),
        (
            args.kubeconfig.is_some(),
            "--kubeconfig",
            "names a file to look at; leave one of them out",
        ),
        (
            args.discover_etcd,
            "--discover-etcd",
            "needs a kubeconfig or this node's pki/ca.key; leave one of them out, or name the members with --etcd",
        ),
        (
            args.etcd_mint_client_cert,
            "--etcd-mint-client-cert",
            "needs this node's etcd/ca.key; leave one of them out",
        ),
        (
            args.discover_members && without_pair,
            "--discover-members",
            "needs a client certificate for etcd; give --etcd-cacert, --etcd-cert and --etcd-key, or leave one of them out",
        ),
    ];
    match needs.into_iter().find(|(given, ..)| *given) {
        None => Ok(()),
        Some((_, flag, what)) => Err(ConfigError::Contradiction(format!(
            "--no-discovery lets no file be looked at, and {flag} {what}"
        ))),
    }
}

fn targets(args: &ProbingArgs, origins: &Origins) -> Result<Vec<Found<TargetSpec>>, ConfigError> {
    let mut targets: Vec<Found<TargetSpec>> = Vec::new();
    for (name, role, inputs) in [
        ("etcd", Role::EtcdClient, &args.etcd),
        ("etcd-peer", Role::EtcdPeer, &args.etcd_peer),
        ("apiserver", Role::ApiServer, &args.apiserver),
    ] {
        for input in inputs {
            let origin = origins.of(name);
            let target = parse(role, input).map_err(|error| ConfigError::Address {
                origin: origin.clone(),
                error,
            })?;
            // One connection per target is a promise; a target named twice is still one.
            if !targets.iter().any(|known| known.value == target) {
                targets.push(Found::new(target, origin));
            }
        }
    }
    Ok(targets)
}

fn client_pair(args: &ProbingArgs) -> Result<Option<(PathBuf, PathBuf)>, ConfigError> {
    let needs = |given, missing, reason| {
        Err(ConfigError::Needs {
            given,
            missing,
            reason,
        })
    };
    match (&args.etcd_cert, &args.etcd_key) {
        (None, None) => Ok(None),
        (Some(_), None) => needs(
            "--etcd-cert",
            "--etcd-key",
            "a certificate is of no use without its key",
        ),
        (None, Some(_)) => needs(
            "--etcd-key",
            "--etcd-cert",
            "a key is of no use without its certificate",
        ),
        (Some(_), Some(_)) if args.etcd_cacert.is_none() => needs(
            "--etcd-cert",
            "--etcd-cacert",
            "credentials are only ever sent to a server that can be verified",
        ),
        (Some(certificate), Some(key)) => Ok(Some((certificate.clone(), key.clone()))),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Args, Command};

    fn resolve(arguments: &[&str]) -> Result<PreflightConfig, String> {
        let all = ["joinprobe", "preflight"].iter().chain(arguments);
        let args = Args::try_parse_from(all).map_err(|error| error.to_string())?;
        let common = Common::resolve(&args.global);
        let Command::Preflight(args) = args.command else {
            panic!("not preflight");
        };
        PreflightConfig::resolve(common, *args, &Origins::default())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_target_named_twice_is_probed_once() {
        let config = resolve(&["--etcd", "a:1", "--etcd", "a:1", "--etcd-peer", "a:1"]).unwrap();
        assert_eq!(config.targets.len(), 2);
    }

    #[test]
    fn usage_errors_name_flag_reason_and_remedy() {
        for (arguments, parts) in [
            (
                &["--no-discovery"] as &[&str],
                ["no targets", "name what", "--etcd 10.0.0.1:2379"],
            ),
            (
                &["--no-discovery", "--discover-etcd"],
                ["--no-discovery", "--discover-etcd", "--etcd"],
            ),
            (
                &["--no-discovery", "--etcd", "a:1", "--discover-members"],
                ["--no-discovery", "--discover-members", "--etcd-cert"],
            ),
            (
                &["--no-discovery", "--join-config", "f"],
                ["--no-discovery", "--join-config", "leave one"],
            ),
            (
                &["--etcd", "a:1", "--max-connections", "17"],
                ["--max-connections", "from 1 to 16", "for example 3"],
            ),
            (
                &["--etcd", "a:1", "--allow-unreachable", "-1"],
                ["--allow-unreachable", "from 0 to", "for example 1"],
            ),
            (&["--etcd", "a"], ["--etcd:", "port is missing", "a:2379"]),
            (
                &["--apiserver", "a"],
                ["--apiserver:", "port is missing", "a:6443"],
            ),
            (
                &["--etcd", "a:1", "--etcd-cert", "c"],
                ["--etcd-cert", "--etcd-key", "no use"],
            ),
            (
                &["--etcd", "a:1", "--etcd-key", "c"],
                ["--etcd-key", "--etcd-cert", "no use"],
            ),
            (
                &["--etcd", "a:1", "--etcd-cert", "c", "--etcd-key", "k"],
                ["--etcd-cert", "--etcd-cacert", "verified"],
            ),
            (
                &["--etcd", "a:1", "--timeout", "10"],
                ["--timeout", "unit", "for example 10s"],
            ),
            (
                &["--etcd", "a:1", "--timeout", "0s"],
                ["--timeout", "longer than zero", "10s"],
            ),
            (
                &[
                    "--etcd",
                    "a:1",
                    "--etcd-heartbeat",
                    "1s",
                    "--etcd-election",
                    "2s",
                ],
                ["--etcd-election 2s", "five times", "manifest"],
            ),
        ] {
            let error = resolve(arguments).unwrap_err();
            for part in parts {
                assert!(error.contains(part), "{part} is missing in: {error}");
            }
        }
    }
}
