//! What is said beside the verdict and never changes it.

use super::{Finding, FindingState, Join, Policy, RunVerdict, Timing, Verdict, recommend};
use crate::measure::TargetMeasurement;

/// Adds the recommendation of raft timing to a run's verdict, and for a control-plane join what was left unmeasured.
///
/// Where the user's own limits made the verdict better than the timing rule would, the rule's finding is not a warning:
/// it says what it says, and nothing else follows.
pub fn advise(
    run: &mut RunVerdict,
    measured: &[TargetMeasurement],
    timing: &Timing,
    policy: &Policy,
    join: Join,
) {
    if let Some(mut made) = recommend(measured, timing, policy) {
        if made.finding.state == FindingState::Warn && run.verdict < Verdict::Warn {
            made.finding.state = FindingState::NotDecided;
            made.finding
                .text
                .push_str(" (advice only: the limits that were given judge the RTT)");
        }
        run.findings.push(made.finding.clone());
        run.recommendation = Some(made);
    }
    if join == Join::ControlPlane {
        run.findings.push(throughput());
    }
}

fn throughput() -> Finding {
    Finding::plain(
        "throughput",
        FindingState::Skipped,
        "throughput was not measured: that would put load on the cluster; RTT and retransmits bound it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::testing;

    fn advised(verdict: Verdict, path_us: &[u32], join: Join) -> RunVerdict {
        let mut run = RunVerdict {
            verdict,
            findings: Vec::new(),
            targets: Vec::new(),
            recommendation: None,
        };
        let measured = [testing::etcd(path_us)];
        advise(
            &mut run,
            &measured,
            &Timing::default(),
            &Policy::default(),
            join,
        );
        run
    }

    #[test]
    fn advice_never_changes_the_verdict_nor_contradicts_it() {
        let run = advised(Verdict::Fail, &[130_000; 15], Join::ControlPlane);
        assert_eq!(run.verdict, Verdict::Fail);
        assert_eq!(run.findings[0].state, FindingState::Warn);
        let run = advised(Verdict::Pass, &[130_000; 15], Join::ControlPlane);
        assert_eq!(run.verdict, Verdict::Pass);
        assert_eq!(run.findings[0].state, FindingState::NotDecided);
        assert!(run.findings[0].text.contains("advice only"));
        assert!(run.recommendation.is_some());
    }

    #[test]
    fn what_was_not_measured_is_named() {
        let run = advised(Verdict::Pass, &[], Join::ControlPlane);
        assert_eq!(run.recommendation, None);
        assert_eq!(run.findings[0].id, "throughput");
        assert!(
            advised(Verdict::Pass, &[], Join::Worker)
                .findings
                .is_empty()
        );
    }
}
