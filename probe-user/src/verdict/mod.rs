//! Decides. A pure function of measurements and limits: no clock, no network, no kernel.

mod advice;
mod beta;
pub mod bounds;
mod combine;
mod decisions;
mod demote;
mod finding;
mod judge;
mod limits;
mod median;
mod policy;
#[cfg(test)]
mod properties;
mod recommend;
#[cfg(test)]
mod testing;
pub(crate) mod text;
mod timing;

pub use advice::advise;
pub use combine::combine;
pub use decisions::{Decisions, WorstInterval};
pub use finding::{Finding, FindingState, Unit, WarnFail};
pub use judge::{judge_target, needs_more};
pub use limits::{Limit, LimitError, LimitId, Limits};
pub use policy::{Join, Policy, RunPolicy};
pub use recommend::{Fit, RULE, Recommendation, recommend};
pub use timing::{Profile, Timing};

/// What a target or a whole run comes to, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Everything decided is within its limit.
    Pass,
    /// Something is beyond a warn limit.
    Warn,
    /// A fail limit on a median could not be decided, or etcd was not measured.
    Inconclusive,
    /// Something is beyond a fail limit.
    Fail,
}

impl Verdict {
    /// `pass`, `warn`, `inconclusive` or `fail`: label and JSON value.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Inconclusive => "inconclusive",
            Self::Fail => "fail",
        }
    }
}

/// A target's verdict and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetVerdict {
    /// The worst of the findings.
    pub verdict: Verdict,
    /// One per check, in the order a person reads them; undecided and skipped ones included.
    pub findings: Vec<Finding>,
}

impl TargetVerdict {
    /// The verdict that these findings amount to.
    #[must_use]
    pub fn of(findings: Vec<Finding>) -> Self {
        Self {
            verdict: judge::worst(&findings),
            findings,
        }
    }
}

/// A run's verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct RunVerdict {
    /// That of the worst target, after what the policy tolerates.
    pub verdict: Verdict,
    /// Findings about the run as a whole (etcd not measured, tolerated members).
    pub findings: Vec<Finding>,
    /// One per measured target, in the same order.
    pub targets: Vec<TargetVerdict>,
    /// Raft timing for what was measured; `None` before [`advise`] and where no member's RTT was measured.
    pub recommendation: Option<Recommendation>,
}
