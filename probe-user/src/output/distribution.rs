//! A distribution as it is written.

use base64::Engine as _;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};
use serde::ser::{Error as _, SerializeMap as _};
use serde::{Serialize, Serializer};

use crate::histogram::{self, Distribution};

/// A distribution in microseconds. Formats that take quantiles ask for them; the others take the whole of it.
///
/// In JSON it is the count and, where there are samples, `min_us`, `p50_us`, `p90_us`, `p99_us`, `max_us` and `hdr`:
/// the HdrHistogram V2 compressed encoding in base64, which is what makes JSON lines of several intervals and nodes
/// mergeable (quantiles cannot be merged).
#[derive(Clone, Debug, PartialEq)]
pub struct DistributionReport {
    /// Where the samples come from (`raw`, `reconstructed`, `smoothed`); only for segments.
    pub source: Option<String>,
    /// The samples.
    pub distribution: Distribution,
}

/// The quantiles every output shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the quantiles, with their unit")]
pub struct Quantiles {
    pub min_us: u64,
    pub p50_us: u64,
    pub p90_us: u64,
    pub p99_us: u64,
    pub max_us: u64,
}

impl DistributionReport {
    /// The written form of a measure whose source needs no telling.
    #[must_use]
    pub fn new(distribution: Distribution) -> Self {
        Self {
            source: None,
            distribution,
        }
    }

    /// The written form of a measure whose samples come from `source`.
    #[must_use]
    pub fn with_source(distribution: Distribution, source: &str) -> Self {
        Self {
            source: Some(source.to_owned()),
            distribution,
        }
    }

    /// Samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.distribution.len()
    }

    /// The quantiles; `None` without samples.
    #[must_use]
    pub fn quantiles(&self) -> Option<Quantiles> {
        let at = |quantile| self.distribution.value_at_quantile(quantile);
        (!self.distribution.is_empty()).then(|| Quantiles {
            min_us: self.distribution.min(),
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            max_us: self.distribution.max(),
        })
    }
}

impl Serialize for DistributionReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(source) = &self.source {
            map.serialize_entry("source", source)?;
        }
        map.serialize_entry("count", &self.count())?;
        if let Some(quantiles) = self.quantiles() {
            map.serialize_entry("min_us", &quantiles.min_us)?;
            map.serialize_entry("p50_us", &quantiles.p50_us)?;
            map.serialize_entry("p90_us", &quantiles.p90_us)?;
            map.serialize_entry("p99_us", &quantiles.p99_us)?;
            map.serialize_entry("max_us", &quantiles.max_us)?;
            let hdr = encoded(&self.distribution).map_err(S::Error::custom)?;
            map.serialize_entry("hdr", &hdr)?;
        }
        map.end()
    }
}

/// The HdrHistogram V2 compressed encoding in base64, over the kernel side's whole range.
fn encoded(distribution: &Distribution) -> Result<String, String> {
    // One range in every header: readers in other languages refuse to add histograms of a larger range.
    let mut full = histogram::full_range();
    full.add(distribution).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(&full, &mut bytes)
        .map_err(|error| error.to_string())?;
    Ok(base64::engine::general_purpose::STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::Deserializer;

    use super::*;

    #[test]
    fn without_samples_there_are_no_quantiles() {
        let json = serde_json::to_value(DistributionReport::new(histogram::empty())).unwrap();
        assert_eq!(json, serde_json::json!({"count": 0}));
    }

    #[test]
    fn json_carries_the_whole_distribution() {
        let mut samples = histogram::empty();
        for value in [9_900, 10_100, 10_200, 48_000] {
            histogram::record(&mut samples, value, 1);
        }
        let json =
            serde_json::to_value(DistributionReport::with_source(samples.clone(), "raw")).unwrap();
        assert_eq!(json["source"], "raw");
        assert_eq!(json["count"], 4);
        assert_eq!(json["p50_us"], 10_111);
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(json["hdr"].as_str().unwrap())
            .unwrap();
        let back: Distribution = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .unwrap();
        let counts = |distribution: &Distribution| -> Vec<_> {
            distribution
                .iter_recorded()
                .map(|step| (step.value_iterated_to(), step.count_at_value()))
                .collect()
        };
        assert_eq!(counts(&back), counts(&samples));
        assert_eq!(back.max(), samples.max());
    }
}
