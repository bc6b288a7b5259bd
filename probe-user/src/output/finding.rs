//! A finding as it is written.

use probe_common::cells::Measure;
use serde::Serialize;

use crate::verdict::{Finding, FindingState, Unit, WarnFail};

/// One check, in the JSON shape.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FindingReport {
    /// Stable id; anchor in docs/verdicts.md.
    pub id: &'static str,
    /// The state's name.
    pub state: &'static str,
    /// The measure's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure: Option<&'static str>,
    /// The quantile, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantile: Option<f64>,
    /// Samples.
    pub n: u64,
    /// Samples with which it is decided at the earliest, where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<u64>,
    /// Values in microseconds.
    #[serde(flatten)]
    pub micros: Micros,
    /// Values in parts per million, for rates.
    #[serde(flatten)]
    pub ppm: PartsPerMillion,
    /// Values that are plain counts.
    #[serde(flatten)]
    pub count: Counts,
    /// Where the limit comes from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// One sentence.
    pub text: String,
    /// What to do next.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// For the formats that draw it.
    #[serde(skip)]
    pub mark: FindingState,
    /// The same values for the formats that need no unit in the name.
    #[serde(skip)]
    pub amount: Option<Amount>,
}

/// A measured value beside its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount {
    /// What was measured.
    pub value: u64,
    /// The limit that was decided on.
    pub limit: Option<u64>,
    /// The warn and the fail limit.
    pub limits: WarnFail,
    /// The unit of all of them.
    pub unit: Unit,
}

impl Amount {
    fn of(finding: &Finding) -> Option<Self> {
        Some(Self {
            value: finding.value?,
            limit: finding.limit,
            limits: finding.limits,
            unit: finding.unit,
        })
    }
}

macro_rules! values {
    ($(#[$doc:meta])* $name:ident, $value:ident, $lower:ident, $upper:ident, $limit:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        #[allow(missing_docs, reason = "the four names say it: value, lower and upper bound, limit, with their unit")]
        pub struct $name {
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $value: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $lower: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $upper: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $limit: Option<u64>,
        }

        impl $name {
            fn of(finding: &Finding, unit: Unit) -> Self {
                if finding.unit != unit {
                    return Self::default();
                }
                Self {
                    $value: finding.value,
                    $lower: finding.lower,
                    $upper: finding.upper,
                    $limit: finding.limit,
                }
            }
        }
    };
}

values!(
    /// A finding's values in microseconds.
    Micros, value_us, lower_us, upper_us, limit_us
);
values!(
    /// A finding's values in parts per million.
    PartsPerMillion, value_ppm, lower_ppm, upper_ppm, limit_ppm
);
values!(
    /// A finding's values as counts.
    Counts, value, lower, upper, limit
);

impl FindingReport {
    /// The written form of `finding`.
    #[must_use]
    pub fn new(finding: &Finding) -> Self {
        Self {
            id: finding.id,
            state: finding.state.name(),
            measure: finding.measure.map(measure_name),
            quantile: finding.quantile,
            n: finding.n,
            needs: finding.needs,
            micros: Micros::of(finding, Unit::Micros),
            ppm: PartsPerMillion::of(finding, Unit::PartsPerMillion),
            count: Counts::of(finding, Unit::Count),
            source: finding.source.clone(),
            text: finding.text.clone(),
            hint: finding.hint.clone(),
            mark: finding.state,
            amount: Amount::of(finding),
        }
    }
}

/// A measure's name in every output.
#[must_use]
pub(crate) fn measure_name(measure: Measure) -> &'static str {
    match measure {
        Measure::Handshake => "handshake",
        Measure::Connect => "connect",
        Measure::Path => "path",
        Measure::Segment => "segment",
        Measure::SegmentMin => "segment_min",
    }
}
