//! `--mode warn`: what failed is told as a warning.

use super::{Finding, FindingState, RunVerdict, TargetVerdict, Verdict, text};

impl RunVerdict {
    /// The same verdict with every fail as a warning, and one finding (`fails-as-warnings`) that says so. What is
    /// undecided stays undecided.
    #[must_use]
    pub fn with_fails_as_warnings(mut self) -> Self {
        let of_targets: u64 = self.targets.iter_mut().map(TargetVerdict::demote).sum();
        let demoted = of_targets + demote(&mut self.findings);
        if self.verdict == Verdict::Fail {
            let open = |findings: &[Finding]| {
                findings
                    .iter()
                    .any(|finding| finding.state == FindingState::Inconclusive)
            };
            let open =
                open(&self.findings) || self.targets.iter().any(|target| open(&target.findings));
            self.verdict = if open {
                Verdict::Inconclusive
            } else {
                Verdict::Warn
            };
        }
        if demoted > 0 {
            let checks = text::count(demoted, "failed check");
            self.findings.push(Finding {
                n: demoted,
                ..Finding::plain(
                    "fails-as-warnings",
                    FindingState::Warn,
                    format!("{checks} reported as warnings, as --mode warn asks"),
                )
            });
        }
        self
    }
}

impl TargetVerdict {
    fn demote(&mut self) -> u64 {
        let demoted = demote(&mut self.findings);
        if demoted > 0 {
            self.verdict = super::judge::worst(&self.findings);
        }
        demoted
    }
}

/// Makes warnings of fails; how many there were.
fn demote(findings: &mut [Finding]) -> u64 {
    let mut demoted = 0;
    for finding in findings {
        if finding.state == FindingState::Fail {
            finding.state = FindingState::Warn;
            demoted += 1;
        }
    }
    demoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(states: &[FindingState]) -> RunVerdict {
        let findings: Vec<_> = states
            .iter()
            .map(|&state| Finding::plain("etcd-path-rtt-median", state, "it is so"))
            .collect();
        let target = TargetVerdict::of(findings);
        RunVerdict {
            verdict: target.verdict,
            findings: Vec::new(),
            targets: vec![target],
            recommendation: None,
        }
    }

    #[test]
    fn fails_become_warnings_and_say_so() {
        let demoted = run(&[FindingState::Fail, FindingState::Pass, FindingState::Fail])
            .with_fails_as_warnings();
        assert_eq!(demoted.verdict, Verdict::Warn);
        assert_eq!(demoted.targets[0].verdict, Verdict::Warn);
        assert_eq!(
            demoted.findings[0].text,
            "2 failed checks reported as warnings, as --mode warn asks"
        );
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        for state in [
            FindingState::Pass,
            FindingState::Warn,
            FindingState::Inconclusive,
            FindingState::NotDecided,
            FindingState::Skipped,
        ] {
            assert_eq!(run(&[state]).with_fails_as_warnings(), run(&[state]));
        }
        let both = run(&[FindingState::Fail, FindingState::Inconclusive]).with_fails_as_warnings();
        assert_eq!(both.verdict, Verdict::Inconclusive);
    }
}
