//! The three exposition formats and how a scraper asks for one.

use std::sync::Arc;

use prometheus_client::encoding::{prometheus_protobuf, prometheus_text, text};
use prometheus_client::registry::Registry;

use super::families::Families;
use super::snapshot::Snapshot;

/// A way to write metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Prometheus text 0.0.4; also what the textfile collector reads.
    Text,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
    /// Delimited `io.prometheus.client.MetricFamily`, the only one that carries native histograms.
    Protobuf,
}

impl Format {
    /// All of them, in the order of their discriminants.
    pub(super) const ALL: [Self; 3] = [Self::Text, Self::OpenMetrics, Self::Protobuf];

    /// The `Content-Type` of an answer.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Text => prometheus_text::CONTENT_TYPE,
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }

    /// The best of the formats that an `Accept` header names; text where it names none of them.
    pub(super) fn negotiate(accept: &str) -> Self {
        let mut best = (0.0, Self::Text);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let Some(media) = parts.next() else { continue };
            let parameters: Vec<(&str, &str)> = parts
                .filter_map(|parameter| parameter.split_once('='))
                .map(|(key, value)| (key.trim(), value.trim().trim_matches('"')))
                .collect();
            let parameter = |name: &str| {
                parameters
                    .iter()
                    .find(|(key, _)| key.eq_ignore_ascii_case(name))
                    .map(|(_, value)| *value)
            };
            let quality = parameter("q")
                .and_then(|q| q.parse::<f32>().ok())
                .unwrap_or(1.0);
            let format = Self::of_media(media, parameter("proto"), parameter("encoding"), {
                parameter("version")
            });
            if let Some(format) = format
                && quality > best.0
            {
                best = (quality, format);
            }
        }
        best.1
    }

    fn of_media(
        media: &str,
        proto: Option<&str>,
        encoding: Option<&str>,
        version: Option<&str>,
    ) -> Option<Self> {
        match media.to_ascii_lowercase().as_str() {
            "application/vnd.google.protobuf" => (proto
                == Some("io.prometheus.client.MetricFamily")
                && encoding == Some("delimited"))
            .then_some(Self::Protobuf),
            "application/openmetrics-text" => {
                matches!(version, None | Some("1.0.0")).then_some(Self::OpenMetrics)
            }
            "text/plain" => matches!(version, None | Some("0.0.4")).then_some(Self::Text),
            "text/*" | "*/*" => Some(Self::Text),
            _ => None,
        }
    }

    /// Writes `snapshot`.
    ///
    /// # Errors
    /// The encoder refuses; it has no reason to.
    pub(super) fn encode(self, snapshot: &Arc<Snapshot>) -> Result<Vec<u8>, String> {
        let mut registry = Registry::with_prefix("joinprobe");
        registry.register_collector(Box::new(Families(Arc::clone(snapshot))));
        let mut text = String::new();
        match self {
            Self::Text => prometheus_text::encode(&mut text, &registry),
            Self::OpenMetrics => text::encode(&mut text, &registry),
            Self::Protobuf => {
                return prometheus_protobuf::encode_to_vec(&registry)
                    .map_err(|error| error.to_string());
            }
        }
        .map_err(|_| "the metrics could not be formatted".to_owned())?;
        Ok(text.into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_scrapers_ask_for() {
        for (accept, format) in [
            ("", Format::Text),
            ("*/*", Format::Text),
            ("text/html, */*;q=0.1", Format::Text),
            // Prometheus 2.42 without and with native histograms.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                 text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                Format::OpenMetrics,
            ),
            (
                "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,\
                 application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,\
                 text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                Format::Protobuf,
            ),
            // Prometheus 3: a text version that we do not write comes before one that we do.
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.4,\
                 text/plain;version=1.0.0;escaping=allow-utf-8;q=0.7,text/plain;version=0.0.4;q=0.6,*/*;q=0.1",
                Format::Text,
            ),
            (
                "application/vnd.google.protobuf; proto=\"io.prometheus.client.MetricFamily\"; encoding=\"delimited\"",
                Format::Protobuf,
            ),
            (
                "application/vnd.google.protobuf;proto=other;encoding=delimited",
                Format::Text,
            ),
            (
                "application/openmetrics-text;q=0,text/plain;q=0.1",
                Format::Text,
            ),
            (";;;,=,q=1;", Format::Text),
        ] {
            assert_eq!(Format::negotiate(accept), format, "{accept}");
        }
    }
}
