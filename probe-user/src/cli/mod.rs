//! The command line: raw arguments, resolved once into a [`Config`](crate::config).

mod args;
mod decision;
mod duration;
mod format;
pub mod log;
pub mod negative;
mod number;
mod observe;
mod probing;
pub mod progress;
pub mod signal;

pub use args::{
    Args, ColorChoice, Command, CompletionsArgs, DoctorArgs, GlobalArgs, OutputFormat, PlainFormat,
    PreflightArgs, ReportArgs, RttSourceChoice,
};
pub use decision::{DecisionArgs, Mode, TimingArgs};
pub use observe::{GroupBy, ObserveArgs, RunArgs, WatchArgs};
pub use probing::ProbingArgs;
