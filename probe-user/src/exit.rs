//! Exit codes: the contract with scripts, cloud-init and monitoring.

use std::process::ExitCode;

use crate::verdict::Verdict;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Pass, warnings included.
    Pass,
    /// Nothing could be measured: not root, the kernel refuses, another program owns the hook, output not writable.
    CouldNotMeasure,
    /// Wrong usage or configuration, or unreadable or mismatched key files.
    Usage,
    /// A target failed.
    Fail,
    /// A warning, and `--strict` was given.
    Warn,
    /// Not enough data to decide, or etcd was not measured.
    Inconclusive,
    /// The code of the command that was run; not 0.
    Command(u8),
}

/// What the user made of verdicts that are neither pass nor fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leniency {
    /// `--strict`: a warning is an exit code of its own.
    pub strict: bool,
    /// `--allow-inconclusive`: too little data is no reason to stop.
    pub allow_inconclusive: bool,
    /// `--mode warn`: everything is reported, nothing stops the join.
    pub warn_only: bool,
}

impl Exit {
    /// The exit code of a run that came to `verdict`.
    #[must_use]
    pub fn of(verdict: Verdict, leniency: Leniency) -> Self {
        match verdict {
            _ if leniency.warn_only => Self::Pass,
            Verdict::Warn if leniency.strict => Self::Warn,
            Verdict::Pass | Verdict::Warn => Self::Pass,
            Verdict::Inconclusive if leniency.allow_inconclusive => Self::Pass,
            Verdict::Inconclusive => Self::Inconclusive,
            Verdict::Fail => Self::Fail,
        }
    }

    /// The process's exit code.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::CouldNotMeasure => 1,
            Self::Usage => 2,
            Self::Fail => 3,
            Self::Warn => 4,
            Self::Inconclusive => 5,
            Self::Command(code) => code,
        }
    }
}

/// Whose exit codes the process ends with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contract {
    /// joinprobe's own, those of [`Exit::code`].
    #[default]
    Joinprobe,
    /// Monitoring plugins: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
    MonitoringPlugin,
    /// node-problem-detector: 0 OK, 1 problem, 2 unknown.
    NodeProblemDetector,
}

impl Contract {
    /// What is made of the verdict under this contract. A monitoring plugin has a code for warnings, whether or not
    /// `--strict` asks for one, so with `--mode warn` it has nothing to leave out: the fails are warnings already.
    #[must_use]
    pub fn leniency(self, given: Leniency) -> Leniency {
        Leniency {
            strict: given.strict || self == Self::MonitoringPlugin,
            warn_only: given.warn_only && self != Self::MonitoringPlugin,
            ..given
        }
    }

    /// The process's exit code.
    #[must_use]
    pub fn code(self, exit: Exit) -> u8 {
        match (self, exit) {
            (Self::Joinprobe, exit) => exit.code(),
            (_, Exit::Command(code)) => code,
            (_, Exit::Pass) => 0,
            (_, Exit::Warn) | (Self::NodeProblemDetector, Exit::Fail) => 1,
            (Self::MonitoringPlugin, Exit::Fail) | (Self::NodeProblemDetector, _) => 2,
            (Self::MonitoringPlugin, _) => 3,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_the_documented_ones() {
        for (verdict, strict, allow_inconclusive, warn_only, code) in [
            (Verdict::Pass, true, false, false, 0),
            (Verdict::Warn, false, false, false, 0),
            (Verdict::Warn, true, false, false, 4),
            (Verdict::Inconclusive, false, false, false, 5),
            (Verdict::Inconclusive, true, true, false, 0),
            (Verdict::Fail, false, true, false, 3),
            (Verdict::Fail, true, false, true, 0),
        ] {
            let leniency = Leniency {
                strict,
                allow_inconclusive,
                warn_only,
            };
            assert_eq!(Exit::of(verdict, leniency).code(), code);
        }
        assert_eq!(Exit::CouldNotMeasure.code(), 1);
        assert_eq!(Exit::Usage.code(), 2);
    }

    #[test]
    fn other_contracts_have_their_own_codes() {
        for (exit, plugin, detector) in [
            (Exit::Pass, 0, 0),
            (Exit::Warn, 1, 1),
            (Exit::Fail, 2, 1),
            (Exit::Inconclusive, 3, 2),
            (Exit::CouldNotMeasure, 3, 2),
            (Exit::Usage, 3, 2),
        ] {
            assert_eq!(Contract::MonitoringPlugin.code(exit), plugin);
            assert_eq!(Contract::NodeProblemDetector.code(exit), detector);
            assert_eq!(Contract::Joinprobe.code(exit), exit.code());
        }
    }

    #[test]
    fn a_monitoring_plugin_always_tells_a_warning() {
        let leniency = Contract::MonitoringPlugin.leniency(Leniency::default());
        assert_eq!(Exit::of(Verdict::Warn, leniency), Exit::Warn);
        let demoted = Contract::MonitoringPlugin.leniency(Leniency {
            warn_only: true,
            ..Leniency::default()
        });
        assert_eq!(Exit::of(Verdict::Warn, demoted), Exit::Warn);
        let leniency = Contract::NodeProblemDetector.leniency(Leniency::default());
        assert_eq!(Exit::of(Verdict::Warn, leniency), Exit::Pass);
    }
}
