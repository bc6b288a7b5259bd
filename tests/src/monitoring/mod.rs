//! What reads joinprobe's metrics on a real cluster: Prometheus, promtool and `node_exporter`, on this host's loopback.

mod http;
mod node_exporter;
mod prometheus;
mod promtool;

pub use http::get;
pub use node_exporter::NodeExporter;
pub use prometheus::{Prometheus, Sample};
pub use promtool::promtool;
