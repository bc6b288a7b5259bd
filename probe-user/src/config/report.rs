//! `joinprobe report`, resolved.

use std::path::PathBuf;

use super::sources::Origins;
use super::{ConfigError, TimingChoice};
use crate::cli::{PlainFormat, ReportArgs};
use crate::verdict::Timing;

/// What to put together and how to show it.
#[derive(Clone, Debug)]
pub struct ReportConfig {
    /// Files to read; `-` is standard input.
    pub files: Vec<PathBuf>,
    /// Keep nodes apart.
    pub per_node: bool,
    /// Where to write the page.
    pub html: Option<PathBuf>,
    /// Print JSON instead of tables.
    pub json: bool,
    /// The cluster's raft timing.
    pub timing: Timing,
}

impl ReportConfig {
    /// Resolves the arguments.
    ///
    /// # Errors
    /// Timing that etcd would refuse.
    pub fn resolve(args: ReportArgs, origins: &Origins) -> Result<Self, ConfigError> {
        Ok(Self {
            timing: TimingChoice::resolve(&args.timing, origins)?.or(Timing::default()),
            files: args.files,
            per_node: args.per_node,
            html: args.html,
            json: args.json || args.output == PlainFormat::Json,
        })
    }
}
