//! Reading etcd's own counters.

use std::collections::BTreeMap;

/// One scrape of a Prometheus text page: series with their labels, and values.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metrics {
    series: BTreeMap<String, f64>,
}

impl Metrics {
    /// Reads a page of text format 0.0.4. Lines it does not understand are left out.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let sample = |line: &str| {
            let (series, value) = line.rsplit_once(' ')?;
            Some((series.to_owned(), value.parse().ok()?))
        };
        Self {
            series: text
                .lines()
                .filter(|line| !line.starts_with('#'))
                .filter_map(sample)
                .collect(),
        }
    }

    /// The value of a series without labels.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<f64> {
        self.series.get(name).copied()
    }

    /// The sum over all series of this name that carry all these labels.
    #[must_use]
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let matches = |series: &str| {
            series
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix('{'))
                .is_some_and(|rest| {
                    labels
                        .iter()
                        .all(|(label, value)| rest.contains(&format!("{label}=\"{value}\"")))
                })
        };
        self.series
            .iter()
            .filter(|(series, _)| matches(series))
            .map(|(_, value)| value)
            .sum()
    }

    /// How often each gRPC method was called, by name, of those called at all.
    #[must_use]
    pub fn calls(&self) -> BTreeMap<String, u64> {
        let mut calls = BTreeMap::new();
        for (series, value) in &self.series {
            let method = series
                .strip_prefix("grpc_server_started_total{")
                .and_then(|labels| labels.split("grpc_method=\"").nth(1))
                .and_then(|rest| rest.split('"').next());
            if let Some(method) = method
                && *value > 0.0
            {
                *calls.entry(method.to_owned()).or_insert(0) += whole(*value);
            }
        }
        calls
    }

    /// The store's revision; grows with every write.
    #[must_use]
    pub fn revision(&self) -> Option<u64> {
        // The debugging name is that of 3.4 and 3.5.
        self.value("etcd_debugging_mvcc_current_revision")
            .map(whole)
    }

    /// Raft proposals committed; grows with every write, also those that keys do not show.
    #[must_use]
    pub fn proposals_committed(&self) -> Option<u64> {
        self.value("etcd_server_proposals_committed_total")
            .map(whole)
    }
}

/// Counters are whole numbers that the text format writes as floating point.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counters are small and not negative"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"# HELP grpc_server_started_total Total number of RPCs started on the server.
# TYPE grpc_server_started_total counter
grpc_server_started_total{grpc_method="Put",grpc_service="etcdserverpb.KV",grpc_type="unary"} 0
grpc_server_started_total{grpc_method="Range",grpc_service="etcdserverpb.KV",grpc_type="unary"} 3
grpc_server_handled_total{grpc_code="OK",grpc_method="Range",grpc_service="etcdserverpb.KV",grpc_type="unary"} 2
grpc_server_handled_total{grpc_code="Unavailable",grpc_method="Range",grpc_service="etcdserverpb.KV",grpc_type="unary"} 1
etcd_server_proposals_committed_total 8
etcd_debugging_mvcc_current_revision 1.5e+01
"#;

    #[test]
    fn reads_etcds_page() {
        let metrics = Metrics::parse(PAGE);
        assert_eq!(metrics.calls(), BTreeMap::from([("Range".to_owned(), 3)]));
        assert_eq!(metrics.revision(), Some(15));
        assert_eq!(metrics.proposals_committed(), Some(8));
        let handled = metrics.sum(
            "grpc_server_handled_total",
            &[("grpc_method", "Range"), ("grpc_code", "OK")],
        );
        assert!((handled - 2.0).abs() < f64::EPSILON);
    }
}
