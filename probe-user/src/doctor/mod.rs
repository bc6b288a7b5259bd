//! `joinprobe doctor`: what this host can do and what it cannot, each with the reason and the remedy.

mod cgroup;
mod check;
mod kernel;
mod rights;
mod surroundings;
mod trial;
mod write;

use std::path::PathBuf;

pub use check::{Check, CheckState};
pub use write::{json, table};

use crate::config::Common;

/// What to look at and how to print it.
#[derive(Clone, Debug)]
pub struct DoctorConfig {
    /// A cgroup v2 directory to attach to instead of the root of the hierarchy.
    pub cgroup: Option<PathBuf>,
    /// This node's name in the output.
    pub node: String,
}

impl From<&Common> for DoctorConfig {
    fn from(common: &Common) -> Self {
        Self {
            cgroup: common.cgroup.clone(),
            node: common.node.clone(),
        }
    }
}

/// All that was found.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    /// This node's name.
    pub node: String,
    /// What was looked at, the trial first.
    pub checks: Vec<Check>,
}

impl Diagnosis {
    /// Whether joinprobe can measure here.
    #[must_use]
    pub fn can_measure(&self) -> bool {
        self.checks
            .iter()
            .all(|check| check.state != CheckState::Fail)
    }
}

/// Looks at everything. Loads joinprobe's eBPF programs and attaches them for a moment, as `joinprobe watch` would.
#[must_use]
pub fn run(config: &DoctorConfig) -> Diagnosis {
    let chosen = config.cgroup.as_deref();
    // Before the trial, which hangs on the hook itself.
    let hook = cgroup::hook(chosen);
    let mut checks = trial::checks(chosen);
    checks.extend(kernel::checks());
    checks.extend(rights::checks());
    checks.push(cgroup::layout(chosen));
    checks.push(hook);
    checks.extend(surroundings::checks());
    Diagnosis {
        node: config.node.clone(),
        checks,
    }
}
