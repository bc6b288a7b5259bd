//! The rules on made-up measurements.

mod connecting;
mod etcd;
mod reach;
mod rtt;
mod run;

use std::time::Duration;

use crate::measure::TargetMeasurement;
use crate::probe::{ClientCertificate, EtcdAnswer, ProbeFailure, Stage};
use crate::target::Role;
use crate::verdict::testing::{at_host, etcd, unreachable};
use crate::verdict::{
    Finding, FindingState, Join, Limits, Policy, RunPolicy, TargetVerdict, Verdict, combine,
    judge_target, needs_more,
};

const DOCUMENTATION: &str = include_str!("../../../../../docs/verdicts.md");

fn judge(measured: &TargetMeasurement) -> TargetVerdict {
    let verdict = judge_target(measured, &Limits::default(), &Policy::default());
    for finding in &verdict.findings {
        let anchor = format!("\n### {}\n", finding.id);
        assert!(DOCUMENTATION.contains(&anchor), "no anchor {}", finding.id);
    }
    verdict
}

fn finding<'a>(verdict: &'a TargetVerdict, id: &str) -> &'a Finding {
    verdict
        .findings
        .iter()
        .find(|finding| finding.id == id)
        .unwrap_or_else(|| panic!("{id} in {:?}", verdict.findings))
}
