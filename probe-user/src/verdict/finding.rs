//! One check's result.

use probe_common::cells::Measure;

/// What one check came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FindingState {
    /// Within the limit, with confidence.
    Pass,
    /// Beyond a warn limit, with confidence.
    Warn,
    /// Beyond a fail limit, with confidence.
    Fail,
    /// The samples do not decide, and the run's verdict does not depend on it.
    NotDecided,
    /// The samples do not decide a fail limit on a median: the run is inconclusive.
    Inconclusive,
    /// Not checked; the text says why.
    Skipped,
}

impl FindingState {
    /// Label and JSON value.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
            Self::NotDecided => "not_decided",
            Self::Inconclusive => "inconclusive",
            Self::Skipped => "skipped",
        }
    }
}

/// One check: what was measured, against what limit, and what that means.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Stable id and anchor in docs/verdicts.md, for example `etcd-path-rtt-median`.
    pub id: &'static str,
    /// What it came to.
    pub state: FindingState,
    /// The measure, where the check is about one.
    pub measure: Option<Measure>,
    /// The quantile, 0 to 1, where the check is about one.
    pub quantile: Option<f64>,
    /// Samples, or segments for a rate; 0 where there is nothing to count.
    pub n: u64,
    /// The measured value: microseconds, or parts per million for a rate.
    pub value: Option<u64>,
    /// Lower confidence bound, same unit.
    pub lower: Option<u64>,
    /// Upper confidence bound, same unit.
    pub upper: Option<u64>,
    /// The limit that was decided on, same unit.
    pub limit: Option<u64>,
    /// The warn and the fail limit of the check, same unit, where it has one.
    pub limits: WarnFail,
    /// Samples with which it is decided at the earliest, where it is not.
    pub needs: Option<u64>,
    /// Unit of the four values above.
    pub unit: Unit,
    /// Where the limit comes from.
    pub source: String,
    /// What was found, one sentence.
    pub text: String,
    /// What to do next; empty when there is nothing to do.
    pub hint: String,
}

impl Finding {
    /// A finding that is about no measured value.
    pub(crate) fn plain(id: &'static str, state: FindingState, text: impl Into<String>) -> Self {
        Self {
            id,
            state,
            measure: None,
            quantile: None,
            n: 0,
            value: None,
            lower: None,
            upper: None,
            limit: None,
            limits: WarnFail::default(),
            needs: None,
            unit: Unit::Count,
            source: String::new(),
            text: text.into(),
            hint: String::new(),
        }
    }

    /// The same finding with advice.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

/// The limits of one check; which of them was decided on is [`Finding::limit`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WarnFail {
    /// Beyond it is a warning.
    pub warn: Option<u64>,
    /// Beyond it is a failure.
    pub fail: Option<u64>,
}

impl WarnFail {
    /// A check that only warns.
    pub(crate) fn warn(limit: u64) -> Self {
        Self {
            warn: Some(limit),
            fail: None,
        }
    }

    /// A check that only fails.
    pub(crate) fn fail(limit: u64) -> Self {
        Self {
            warn: None,
            fail: Some(limit),
        }
    }

    /// A check that does both. A warn limit above the fail limit has nothing left to say.
    pub(crate) fn both(warn: u64, fail: u64) -> Self {
        Self {
            warn: Some(warn.min(fail)),
            fail: Some(fail),
        }
    }
}

/// The unit of a finding's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Microseconds.
    Micros,
    /// Parts per million: rates.
    PartsPerMillion,
    /// A plain count.
    Count,
}
