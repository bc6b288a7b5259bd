//! Results on their way out: one data model, one file per format.

mod distribution;
mod event;
mod exporter;
mod finding;
mod headline;
mod hlog;
mod interval;
mod json;
mod junit;
mod live;
mod model;
mod nagios;
mod npd;
mod path;
mod perfdata;
mod phase;
#[cfg(test)]
mod processes;
mod prometheus;
mod recommendation;
mod sampled;
#[cfg(test)]
pub(crate) mod samples;
mod schema;
mod short;
mod stream;
mod summary;
mod table;
mod target;
mod timestamp;
mod trace;

use std::io::{self, Write};

pub use distribution::{DistributionReport, Quantiles};
pub use event::{EventReport, Process};
pub use exporter::{ExportError, Exporter, Exporters, Flow};
pub(crate) use finding::measure_name;
pub use finding::{Amount, FindingReport};
pub use hlog::HistogramLog;
pub(crate) use hlog::LogTag;
pub use interval::{Interval, IntervalReport};
pub use json::Json;
pub use junit::Junit;
pub use live::{LiveTable, Screen};
pub use model::{Kind, ObserverReport, Report, Schema};
pub use nagios::Nagios;
pub use npd::{NPD_MESSAGE, Npd};
pub use path::{BadPath, check_folder};
pub use phase::PhaseReport;
pub use prometheus::{Listen, Textfile};
pub use recommendation::{RecommendationReport, TimingReport};
pub use sampled::SampledReport;
pub(crate) use sampled::{SAMPLED_MINIMUM, SAMPLED_SMOOTHED};
pub use schema::JSON_SCHEMA;
pub use short::Short;
pub use stream::{JsonLines, VerdictOnly};
pub use table::{Marks, Table};
pub use target::{
    Connections, EtcdProbeReport, MeasuredReport, ProbeStages, SegmentSizes, TargetReport,
};
pub use timestamp::Timestamp;
pub use trace::{HopReport, PathReport, TraceReport};

/// A verdict in one format.
pub trait Render {
    /// Writes `report` to `out`.
    ///
    /// # Errors
    /// Those of `out`.
    fn write(&self, report: &Report, out: &mut dyn Write) -> io::Result<()>;
}

impl Render for Box<dyn Render> {
    fn write(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        self.as_ref().write(report, out)
    }
}
