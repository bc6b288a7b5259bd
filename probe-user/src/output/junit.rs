//! `-o junit`: XML that CI systems read as test results.

use std::io::{self, Write};
use std::time::Duration;

use quick_junit::{
    NonSuccessKind, Property, Report as Suites, TestCase, TestCaseStatus, TestSuite,
};

use super::headline::Headline;
use super::{FindingReport, Render, Report};
use crate::exit::Leniency;
use crate::verdict::FindingState;

/// A test suite per target and one for the run, a test case per finding.
#[derive(Clone, Copy, Debug)]
pub struct Junit {
    /// What the user made of verdicts that are neither pass nor fail: a test fails where the exit code tells of it.
    pub leniency: Leniency,
}

impl Render for Junit {
    fn write(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let mut suites = Suites::new("joinprobe");
        suites.set_time(Duration::from_micros(report.duration_us));
        suites.add_test_suite(self.of_run(report));
        let targets = report.targets.iter();
        for target in targets.filter(|target| !target.is_further_process()) {
            let measured = &target.measured;
            let mut suite = TestSuite::new(format!("{} {}", measured.role, measured.target));
            for finding in &target.findings {
                let headline = Headline {
                    target: Some(target),
                    finding,
                };
                suite.add_test_case(self.case(&headline, report, measured.role));
            }
            suites.add_test_suite(suite);
        }
        suites.serialize(&mut *out).map_err(io::Error::other)?;
        out.flush()
    }
}

impl Junit {
    fn of_run(self, report: &Report) -> TestSuite {
        let mut suite = TestSuite::new("join");
        for (name, value) in [
            ("verdict", report.verdict.to_owned()),
            ("node", report.node.clone()),
            ("time", report.time.to_string()),
            ("kernel", report.observer.kernel.clone()),
            ("rtt_source", report.observer.rtt_source.clone()),
        ] {
            suite.add_property(Property::new(name, value));
        }
        for finding in &report.findings {
            let headline = Headline {
                target: None,
                finding,
            };
            suite.add_test_case(self.case(&headline, report, "join"));
        }
        suite
    }

    fn case(self, headline: &Headline<'_>, report: &Report, group: &str) -> TestCase {
        let finding = headline.finding;
        let mut case = TestCase::new(finding.id, self.status(headline, report));
        case.set_classname(format!("joinprobe.{group}"));
        if !matches!(case.status, TestCaseStatus::NonSuccess { .. }) {
            case.set_system_out(details(finding));
        }
        case
    }

    fn status(self, headline: &Headline<'_>, report: &Report) -> TestCaseStatus {
        let finding = headline.finding;
        let excused = self.leniency.warn_only || headline.tolerated(report);
        let failure = || TestCaseStatus::non_success(NonSuccessKind::Failure);
        let mut status = match finding.mark {
            FindingState::Fail if !excused => failure(),
            FindingState::Warn if self.leniency.strict && !excused => failure(),
            FindingState::Pass | FindingState::Warn => return TestCaseStatus::success(),
            // Not wrong, but not known: what other tools report as an error of the test.
            FindingState::Inconclusive if !excused && !self.leniency.allow_inconclusive => {
                TestCaseStatus::non_success(NonSuccessKind::Error)
            }
            _ => {
                let mut status = TestCaseStatus::skipped();
                status.set_message(finding.text.as_str());
                return status;
            }
        };
        status.set_type(finding.state);
        status.set_message(finding.text.as_str());
        status.set_description(details(finding));
        status
    }
}

/// What a person wants to read below the name of a check.
fn details(finding: &FindingReport) -> String {
    let mut lines = vec![format!("{}: {}", finding.state, finding.text)];
    if !finding.source.is_empty() {
        lines.push(format!("limit: {}", finding.source));
    }
    if !finding.hint.is_empty() {
        lines.push(format!("hint: {}", finding.hint));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::samples;
    use crate::verdict::Verdict;

    fn junit(report: &Report, leniency: Leniency) -> String {
        let mut out = Vec::new();
        Junit { leniency }.write(report, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Tests, failures, errors and skipped tests, by the elements rather than by the attributes.
    fn counts(xml: &str) -> [usize; 4] {
        let document = roxmltree::Document::parse(xml).unwrap();
        ["testcase", "failure", "error", "skipped"].map(|name| {
            document
                .descendants()
                .filter(|node| node.has_tag_name(name))
                .count()
        })
    }

    #[test]
    fn reads_as_recorded() {
        let usual = Leniency::default();
        insta::assert_snapshot!("junit_pass", junit(&samples::verdict(), usual));
        insta::assert_snapshot!("junit_fail", junit(&samples::trouble(), usual));
    }

    #[test]
    fn a_reader_counts_what_the_attributes_say() {
        let xml = junit(&samples::trouble(), Leniency::default());
        let [tests, failures, errors, skipped] = counts(&xml);
        assert_eq!([tests, failures, errors, skipped], [7, 1, 1, 2]);
        let document = roxmltree::Document::parse(&xml).unwrap();
        let root = document.root_element();
        assert!(root.has_tag_name("testsuites"));
        let sum = |name: &str| -> usize {
            root.children()
                .filter(|node| node.has_tag_name("testsuite"))
                .map(|suite| suite.attribute(name).unwrap().parse::<usize>().unwrap())
                .sum()
        };
        let said = ["tests", "failures", "errors"].map(|name| {
            let total: usize = root.attribute(name).unwrap().parse().unwrap();
            assert_eq!(sum(name), total, "{name}");
            total
        });
        assert_eq!(said, [tests, failures, errors]);
        for case in document
            .descendants()
            .filter(|n| n.has_tag_name("testcase"))
        {
            assert!(case.attribute("name").is_some() && case.attribute("classname").is_some());
        }
        let back = Suites::deserialize_from_str(&xml).unwrap();
        assert_eq!(
            (back.tests, back.failures, back.errors),
            (tests, failures, errors)
        );
    }

    #[test]
    fn tests_fail_where_the_exit_code_tells_of_it() {
        let report = samples::trouble();
        let strict = Leniency {
            strict: true,
            ..Leniency::default()
        };
        assert_eq!(counts(&junit(&report, strict)), [7, 2, 1, 2]);
        let lenient = Leniency {
            allow_inconclusive: true,
            ..Leniency::default()
        };
        assert_eq!(counts(&junit(&report, lenient)), [7, 1, 0, 3]);
        let mut tolerated = samples::trouble();
        tolerated.worst = Verdict::Warn;
        assert_eq!(
            counts(&junit(&tolerated, Leniency::default())),
            [7, 0, 0, 4]
        );
    }

    #[test]
    fn what_xml_cannot_hold_is_left_out() {
        let mut report = samples::verdict();
        report.targets[0].findings[0].text = "bell\u{7} & <tag> \u{0}".to_owned();
        counts(&junit(&report, Leniency::default()));
    }
}
