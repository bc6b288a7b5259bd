//! `joinprobe report`, resolved.

use std::path::PathBuf;

use crate::cli::ReportArgs;

/// What to put together and how to show it.
#[derive(Clone, Debug)]
pub struct ReportConfig {
    /// Files to read; `-` is standard input.
    pub files: Vec<PathBuf>,
    /// Keep nodes apart.
    pub per_node: bool,
    /// Where to write the page.
    pub html: Option<PathBuf>,
}

impl From<ReportArgs> for ReportConfig {
    fn from(args: ReportArgs) -> Self {
        Self {
            files: args.files,
            per_node: args.per_node,
            html: args.html,
        }
    }
}
