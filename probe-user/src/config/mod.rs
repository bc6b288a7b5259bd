//! The resolved configuration: what the rest of the program sees of the command line.

mod decision;
mod observe;
mod preflight;
mod report;
mod run;
pub mod sources;

use std::path::PathBuf;

pub use decision::{DecisionChoice, TimingChoice};
pub use observe::{ObserveConfig, WatchConfig};
pub use preflight::{Credentials, DiscoveryChoice, PreflightConfig};
pub use report::ReportConfig;
pub use run::RunConfig;

use crate::bpf::RttSource;
use crate::cli::{GlobalArgs, RttSourceChoice};
use crate::discover::Origin;
use crate::target::ParseError;

/// Settings every command shares.
#[derive(Clone, Debug)]
pub struct Common {
    /// Root of the cgroup v2 hierarchy; `None`: found in mountinfo.
    pub cgroup: Option<PathBuf>,
    /// Where RTT samples come from; `None`: the best that can be had.
    pub rtt_source: Option<RttSource>,
    /// Let the kernel side's debug lines into the log.
    pub bpf_log: bool,
    /// This node's name in the output.
    pub node: String,
}

impl Common {
    /// Resolves the global arguments.
    #[must_use]
    pub fn resolve(args: &GlobalArgs) -> Self {
        let host = || {
            rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned()
        };
        Self {
            cgroup: args.cgroup.clone(),
            rtt_source: match args.rtt_source {
                RttSourceChoice::Auto => None,
                RttSourceChoice::Raw => Some(RttSource::Raw),
                RttSourceChoice::Reconstructed => Some(RttSource::Reconstructed),
                RttSourceChoice::Smoothed => Some(RttSource::Smoothed),
            },
            bpf_log: args.bpf_log,
            node: args.node_name.clone().unwrap_or_else(host),
        }
    }
}

/// Wrong usage: one sentence with the input, the reason and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// An address could not be read.
    #[error("{origin}: {error}")]
    Address {
        /// The flag, variable or key it was given to.
        origin: Origin,
        /// Why.
        error: ParseError,
    },
    /// A watched address without a known role.
    #[error(
        "--watch {input}: {reason}; write it as HOST:PORT=ROLE, where ROLE is etcd-client, etcd-peer or apiserver"
    )]
    Watch {
        /// As it was given.
        input: String,
        /// What is wrong.
        reason: String,
    },
    /// A watched name that has no address.
    #[error("--watch {input}: {reason}")]
    WatchedName {
        /// As it was given.
        input: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// An output that cannot be.
    #[error(transparent)]
    Output(#[from] crate::output::BadPath),
    /// Nothing to probe.
    #[error(
        "no targets: name what this node must reach, for example \
         `joinprobe preflight --etcd 10.0.0.1:2379 --apiserver 10.0.0.1:6443`"
    )]
    NoTargets,
    /// A flag that needs another one.
    #[error("{given} needs {missing}: {reason}")]
    Needs {
        /// The flag that was given.
        given: &'static str,
        /// The flag that is missing.
        missing: &'static str,
        /// Why it is needed.
        reason: &'static str,
    },
    /// A limit that cannot be.
    #[error(transparent)]
    Limit(#[from] crate::verdict::LimitError),
    /// Two values that contradict each other.
    #[error("{0}")]
    Contradiction(String),
}
