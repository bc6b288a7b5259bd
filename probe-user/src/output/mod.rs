//! Results on their way out: one data model, one file per format.

mod finding;
mod json;
mod model;
mod table;
mod target;

use std::io::{self, Write};

pub use finding::FindingReport;
pub use json::Json;
pub use model::{Kind, ObserverReport, Report, Schema};
pub use table::{Marks, Table};
pub use target::{DistributionReport, EtcdProbeReport, TargetReport};

/// Writes a report in one format.
pub trait Exporter {
    /// Writes `report` to `out`.
    ///
    /// # Errors
    /// Those of `out`.
    fn write(&self, report: &Report, out: &mut dyn Write) -> io::Result<()>;
}
