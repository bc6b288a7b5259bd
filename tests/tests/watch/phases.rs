//! kubeadm's output, replayed by a script that connects on the way: every connection lands in its phase.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use joinprobe_lab::lab::APISERVER_PORT;
use joinprobe_lab::{Lab, take_turn};
use serde_json::Value;

use crate::lines::{quoted, verdict};

/// A phase and the beginning of the line that announces it.
type Boundary = (&'static str, &'static str);

struct Replay {
    log: &'static str,
    /// What is logged goes to a pipe of its own, as standard error does.
    apart: bool,
    /// In order.
    boundaries: &'static [&'static [Boundary]],
}

const PREFLIGHT: &[Boundary] = &[("preflight", "[preflight] Running pre-flight checks")];
/// What a node does for itself, and the look at etcd before it is joined.
const LOCAL: &[Boundary] = &[
    ("download-certs", "[download-certs] Downloading"),
    ("certs", "[certs] Using certificateDir"),
    ("kubeconfig", "[kubeconfig] Generating"),
    ("control-plane", "[control-plane] Using manifest"),
    ("check-etcd", "[check-etcd] Checking"),
];
const ETCD: Boundary = ("etcd", "[etcd] Announced");
const KUBELET: Boundary = ("kubelet-start", "[kubelet-start] Writing");
const UPLOAD: Boundary = ("upload-config", "[upload-config] Storing");
const MARK: Boundary = ("mark-control-plane", "[mark-control-plane] Marking");

const REPLAYS: [Replay; 4] = [
    // With `-v=5` in one stream: what is logged announces phases too.
    Replay {
        log: include_str!("kubeadm/join-1.20.log"),
        apart: false,
        boundaries: &[
            PREFLIGHT,
            &[
                (
                    "discovery",
                    "I1201 21:24:17.066598      58 token.go:78] [discovery]",
                ),
                (
                    "preflight",
                    "I1201 21:24:17.087030      58 join.go:479] [preflight]",
                ),
            ],
            LOCAL,
            &[
                ("etcd", "I1201 21:24:19.060501      58 local.go:80] [etcd]"),
                (
                    "kubelet-start",
                    "I1201 21:24:19.089867      58 kubelet.go:110]",
                ),
                (
                    "patchnode",
                    "I1201 21:24:24.126917      58 patchnode.go:30]",
                ),
                ("etcd", "I1201 21:24:24.667119      58 local.go:156] [etcd]"),
                UPLOAD,
                MARK,
            ],
        ],
    },
    Replay {
        log: include_str!("kubeadm/join-1.20.log"),
        apart: true,
        boundaries: &[
            PREFLIGHT,
            LOCAL,
            &[
                ("kubelet-start", "[kubelet-start] WARNING: unable to stop"),
                ETCD,
                UPLOAD,
                MARK,
            ],
        ],
    },
    Replay {
        log: include_str!("kubeadm/join-1.28.log"),
        apart: false,
        boundaries: &[PREFLIGHT, LOCAL, &[KUBELET, ETCD, MARK]],
    },
    Replay {
        log: include_str!("kubeadm/join-1.36.log"),
        apart: true,
        boundaries: &[
            PREFLIGHT,
            LOCAL,
            &[
                KUBELET,
                ("patches", "[patches] Applied"),
                KUBELET,
                ETCD,
                ("kubelet-check", "[kubelet-check] Waiting"),
                ("kubelet-start", "[kubelet-start] Waiting"),
                MARK,
                ("control-plane-check", "[control-plane-check] Waiting"),
            ],
        ],
    },
];

#[test]
fn every_connection_lands_in_its_phase() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "bash"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(0).spare_nodes(1).start()?;
    let nobody = lab.spare_nodes[0].at(2379);
    let somebody = lab.apiserver_node.at(APISERVER_PORT);
    for (number, replay) in REPLAYS.iter().enumerate() {
        let script = lab.folder().join("replay");
        let report = lab.folder().join("report");
        std::fs::write(&script, replay.script(nobody, somebody, &report)?)?;
        // Of the last replay.
        let _ = std::fs::remove_file(&report);
        let finished = lab.run_joinprobe([
            "run".into(),
            "--allow-inconclusive".into(),
            "-ojson".into(),
            // None but those that a phase ends.
            "--interval=1h".into(),
            "--report-file".into(),
            report.clone().into_os_string(),
            "--".into(),
            "bash".into(),
            script.into_os_string(),
        ])?;
        ensure!(finished.code == Some(0), "{number}: {finished:?}");
        if replay.apart {
            assert_eq!(finished.stdout + &finished.stderr, replay.both_streams());
        } else {
            assert_eq!(finished.stdout, replay.log, "{number}");
        }
        let verdict = verdict(&std::fs::read_to_string(report)?)?;
        assert_eq!(
            found(&verdict, nobody, somebody)?,
            replay.expected(),
            "{number}"
        );
    }
    Ok(())
}

/// Phase, refused connects, established ones; in order.
type Row = (Option<String>, u64, u64);

fn found(verdict: &Value, nobody: SocketAddr, somebody: SocketAddr) -> Result<Vec<Row>> {
    let phases = verdict["phases"].as_array().context("no phases")?;
    let row = |phase: &Value| {
        let count = |address: SocketAddr, outcome: &str| {
            let rows = phase["targets"].as_array().into_iter().flatten();
            rows.filter(|row| row["target"] == address.to_string())
                .filter_map(|row| row["connections"][outcome].as_u64())
                .sum::<u64>()
        };
        (
            phase["phase"].as_str().map(str::to_owned),
            count(nobody, "refused"),
            count(somebody, "established"),
        )
    };
    Ok(phases.iter().map(row).collect())
}

impl Replay {
    /// Prints every line, and behind each boundary connects: each phase more often than the one before. It waits until
    /// joinprobe has read of the phase; kubeadm itself has more to do before it connects.
    fn script(&self, nobody: SocketAddr, somebody: SocketAddr, report: &Path) -> Result<String> {
        let report = quoted(&report.to_string_lossy());
        let mut script = format!(
            "begun() {{ until [ \"$(grep -cs '\"kind\":\"interval\"' {report})\" = $1 ]; do sleep 0.005; done; }}\n\
             nobody() {{ for _ in $(seq $1); do {{ : <>/dev/tcp/{}/{}; }} 2>/dev/null; done; }}\n\
             somebody() {{ : <>/dev/tcp/{}/{}; }}\n",
            nobody.ip(),
            nobody.port(),
            somebody.ip(),
            somebody.port()
        );
        let mut boundaries = self.boundaries.concat().into_iter().zip(1..).peekable();
        for line in self.log.lines() {
            let to = if self.apart && is_logged(line) {
                " >&2"
            } else {
                ""
            };
            writeln!(script, "printf '%s\\n' {}{to}", quoted(line))?;
            if boundaries
                .peek()
                .is_some_and(|((_, begin), _)| line.starts_with(begin))
                && let Some((_, number)) = boundaries.next()
            {
                writeln!(script, "begun {number}; nobody {number}; somebody")?;
            }
        }
        ensure!(boundaries.next().is_none(), "the log lacks a boundary");
        script.push_str("true\n");
        Ok(script)
    }

    fn expected(&self) -> Vec<Row> {
        let phases = self.boundaries.concat().into_iter().zip(1..);
        let phases = phases.map(|((phase, _), number)| (Some(phase.to_owned()), number, 1));
        [(None, 0, 0)].into_iter().chain(phases).collect()
    }

    fn both_streams(&self) -> String {
        let (logged, printed): (Vec<&str>, Vec<&str>) = self
            .log
            .split_inclusive('\n')
            .partition(|line| is_logged(line));
        printed.concat() + &logged.concat()
    }
}

/// Whether klog or etcd's client wrote a line.
fn is_logged(line: &str) -> bool {
    line.starts_with("I1201 ")
        || line.starts_with("W1201 ")
        || line.starts_with("W1202 ")
        || line.starts_with('{')
}
