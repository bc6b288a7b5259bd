//! Exit codes: the contract with scripts, cloud-init and monitoring.

use std::process::ExitCode;

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
}

impl Exit {
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
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
