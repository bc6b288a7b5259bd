//! `--trace`: the way to targets, after everything else.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use crate::measure::{TargetMeasurement, micros};
use crate::output::{FindingReport, Report, TraceReport};
use crate::target::Target;
use crate::trace::{End, Hop, Path, Trace, trace};
use crate::verdict::{Finding, FindingState, Verdict, text};

const ID: &str = "trace";

/// All traces together.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a hint says when nothing was traced.
pub(super) const OFFER: &str = "--trace shows at which hop the time goes or the SYNs are lost.";

/// Traces the targets that are not all right, or all targets when all are: one port of each host, the worst first, and
/// one after the other, because routers limit how many errors they send.
pub(super) async fn add(report: &mut Report, measured: &[TargetMeasurement]) {
    let deadline = Instant::now() + PATIENCE;
    let wanted = |worst: Verdict| worst != Verdict::Pass || report.worst == Verdict::Pass;
    let mut order: Vec<usize> = (0..report.targets.len())
        .filter(|&index| wanted(report.targets[index].worst))
        .collect();
    order.sort_by_key(|&index| std::cmp::Reverse(report.targets[index].worst));
    let mut hosts = BTreeSet::new();
    for index in order {
        let (Some(measured), Some(target)) = (measured.get(index), report.targets.get_mut(index))
        else {
            continue;
        };
        let Some(address) = measured.target.address else {
            continue;
        };
        if Instant::now() >= deadline || !hosts.insert(address.ip()) {
            continue;
        }
        let known = measured.probe.as_ref().and_then(|probe| probe.stages.tcp);
        let trace = trace(address, known, deadline).await;
        target
            .findings
            .push(FindingReport::new(&finding(&measured.target, &trace)));
        target.trace = Some(TraceReport::from(&trace));
    }
}

fn finding(target: &Target, trace: &Trace) -> Finding {
    let sent = format!(
        "traced with {}, {} opened and closed",
        text::count(trace.syns.into(), "SYN"),
        text::count(trace.connections.into(), "connection")
    );
    let ways = match trace.paths.len() {
        0 | 1 => String::new(),
        several => format!(" on {several} paths"),
    };
    let mut told = trace.paths.iter().map(|path| tell(target, path));
    let first = told.next().unwrap_or_default();
    let others: Vec<_> = told.filter(|other| *other != first).collect();
    let mut text = format!("{sent}{ways}: {first}");
    for other in others {
        text.push_str("; another path: ");
        text.push_str(&other);
    }
    let reached = trace.paths.iter().all(|path| path.end.reached());
    let state = if reached {
        FindingState::Pass
    } else {
        FindingState::Skipped
    };
    Finding::plain(ID, state, text)
}

fn tell(target: &Target, path: &Path) -> String {
    let last = path.last().map_or_else(
        || "no hop answered".to_owned(),
        |hop| format!("the last that answered is {}", name(hop)),
    );
    match path.end {
        End::Established | End::Refused => time(path),
        End::Rejected(by) => {
            format!("{by} rejects the SYNs to {target} (ICMP destination unreachable)")
        }
        End::Silence => {
            format!("{last}, and what comes behind it drops the SYNs, or the answers to them")
        }
        End::OutOfTime => format!("{last} before the time was over"),
        End::Local(kind) => format!("this host could not send more SYNs ({kind}); {last}"),
    }
}

fn time(path: &Path) -> String {
    let Some(step) = path.longest_step() else {
        return "no hop answered".to_owned();
    };
    let from = step.from.map_or_else(|| "this host".to_owned(), name);
    format!(
        "{} of {} are added between {from} and {}",
        text::ms(micros(step.added)),
        text::ms(micros(step.total)),
        name(step.to)
    )
}

fn name(hop: Hop) -> String {
    match hop.address {
        Some(address) => format!("{address} (hop {})", hop.ttl),
        None => format!("hop {}", hop.ttl),
    }
}
