//! Rows of different processes that are about one target.
//!
//! Who opens a connection changes nothing about the network: limits are held against all samples of a target, as without
//! `--by process`, or a process that connects once would leave the verdict open.

use std::borrow::Cow;

use crate::measure::TargetMeasurement;
use crate::verdict::TargetVerdict;

/// One measurement per target, its processes' put together; `rows` have those of one target side by side.
pub(super) fn together(rows: &[TargetMeasurement]) -> Cow<'_, [TargetMeasurement]> {
    if rows.iter().all(|row| row.opener.process.is_none()) {
        return Cow::Borrowed(rows);
    }
    let mut targets: Vec<TargetMeasurement> = Vec::new();
    for row in rows {
        match targets.last_mut().filter(|last| are_one(last, row)) {
            Some(target) => add(target, row),
            None => targets.push(row.clone()),
        }
    }
    Cow::Owned(targets)
}

/// One verdict per row, given one per target: that of its target, whose findings the first row has.
pub(super) fn apart(
    verdicts: Vec<TargetVerdict>,
    rows: &[TargetMeasurement],
) -> Vec<TargetVerdict> {
    let mut verdicts = verdicts.into_iter();
    let mut apart: Vec<TargetVerdict> = Vec::new();
    let mut before: Option<&TargetMeasurement> = None;
    for row in rows {
        let further = before.is_some_and(|before| are_one(before, row));
        let verdict = if further {
            apart.last().map(|last| TargetVerdict {
                verdict: last.verdict,
                findings: Vec::new(),
            })
        } else {
            verdicts.next()
        };
        apart.extend(verdict);
        before = Some(row);
    }
    apart
}

fn are_one(a: &TargetMeasurement, b: &TargetMeasurement) -> bool {
    (&a.target, a.side, a.opener.netns) == (&b.target, b.side, b.opener.netns)
}

fn add(target: &mut TargetMeasurement, row: &TargetMeasurement) {
    target.distributions.add(&row.distributions);
    target.counters.add(&row.counters);
    if let Some(more) = &row.sampled {
        target.sampled.get_or_insert_default().add(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Opener;
    use crate::output::samples;
    use crate::target::{ProcessName, Role};
    use crate::verdict::Verdict;

    fn row(address: &str, netns: u64, process: Option<&[u8; 16]>, n: u64) -> TargetMeasurement {
        TargetMeasurement {
            opener: Opener {
                netns,
                process: process.and_then(|name| ProcessName::new(*name)),
            },
            ..samples::target(Role::EtcdClient, address, 10_000, n)
        }
    }

    const ETCD: Option<&[u8; 16]> = Some(b"etcd\0\0\0\0\0\0\0\0\0\0\0\0");
    const KUBEADM: Option<&[u8; 16]> = Some(b"kubeadm\0\0\0\0\0\0\0\0\0");

    #[test]
    fn a_targets_processes_are_judged_together() {
        let rows = [
            row("10.0.0.1:2379", 0, None, 1),
            row("10.0.0.1:2379", 0, ETCD, 2),
            row("10.0.0.1:2379", 0, KUBEADM, 3),
            row("10.0.0.2:2379", 0, KUBEADM, 4),
        ];
        let targets = together(&rows);
        let counts: Vec<_> = targets
            .iter()
            .map(|target| (target.distributions.handshake.len(), target.counters.opened))
            .collect();
        assert_eq!(counts, [(6, 9), (4, 5)]);
        let verdicts = [Verdict::Warn, Verdict::Pass].map(|verdict| TargetVerdict {
            verdict,
            findings: vec![crate::verdict::Finding::plain(
                "x",
                crate::verdict::FindingState::Skipped,
                "x",
            )],
        });
        let rows = apart(verdicts.into(), &rows);
        let found: Vec<_> = rows
            .iter()
            .map(|row| (row.verdict, row.findings.len()))
            .collect();
        assert_eq!(
            found,
            [
                (Verdict::Warn, 1),
                (Verdict::Warn, 0),
                (Verdict::Warn, 0),
                (Verdict::Pass, 1)
            ]
        );
    }

    #[test]
    fn the_same_address_in_two_namespaces_is_two_targets() {
        let rows = [
            row("10.0.0.1:2379", 1, ETCD, 2),
            row("10.0.0.1:2379", 2, KUBEADM, 3),
        ];
        assert_eq!(together(&rows).len(), 2);
    }

    #[test]
    fn without_processes_nothing_is_put_together() {
        let rows = [
            row("10.0.0.1:2379", 1, None, 2),
            row("10.0.0.1:2379", 2, None, 3),
        ];
        assert!(matches!(together(&rows), Cow::Borrowed(same) if same.len() == 2));
    }
}
