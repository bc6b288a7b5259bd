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
}
