//! Why a preflight came to no verdict.

use crate::bpf::AttachError;
use crate::cli::signal::Interrupted;
use crate::exit::Exit;
use crate::plan::PlanError;

/// Each is one sentence with the reason and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    /// Files or credentials are unusable, or there is nothing to measure.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The kernel side could not be attached.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// A signal ended the run.
    #[error("stopped by {} before there was a verdict; nothing is left behind", .0.name)]
    Interrupted(Interrupted),
    /// Signals cannot be waited for.
    #[error("cannot wait for signals: {0}; too many open files or too little memory")]
    Signals(std::io::Error),
}

impl PreflightError {
    /// The exit code.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Plan(_) => Exit::Usage,
            Self::Attach(_) | Self::Interrupted(_) | Self::Signals(_) => Exit::CouldNotMeasure,
        }
    }
}
