//! `joinprobe watch --by process` beside a watch without, over the same traffic.

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use joinprobe_lab::lab::{Finished, binary};
use joinprobe_lab::{Lab, scratch_dir, take_turn};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::lines::{established, lines};

/// Programs, and how often each connects.
const PROGRAMS: [(&str, u64); 3] = [("kubelet", 12), ("kubeadm", 7), ("kube-apiserver", 9)];

/// Shell programs under other names connect to `server` from the joining node.
fn converse(lab: &Lab, server: SocketAddr) -> Result<()> {
    let folder = scratch_dir()?;
    for (name, times) in PROGRAMS {
        let program = folder.path().join(name);
        symlink("/bin/bash", &program)?;
        let script = format!(
            "for _ in $(seq {times}); do exec 3<>/dev/tcp/{}/{} && printf x >&3 && read -rn1 <&3 && exec 3>&- || exit 1; done",
            server.ip(),
            server.port()
        );
        let output = lab
            .joiner
            .namespace
            .output(Command::new(&program).args(["-c", &script]))?;
        ensure!(output.status.success(), "{output:?}");
    }
    Ok(())
}

/// The client rows of a target, by the name of their process.
fn rows(line: &Value, server: SocketAddr) -> BTreeMap<String, &Value> {
    let all = line["targets"].as_array();
    all.into_iter()
        .flatten()
        .filter(|row| row["target"] == server.to_string() && row["side"] == "client")
        .map(|row| {
            let name = row["process"]["name"].as_str().unwrap_or_default();
            (name.to_owned(), row)
        })
        .collect()
}

fn counted(rows: &BTreeMap<String, &Value>) -> Vec<(String, u64)> {
    let counts = rows
        .iter()
        .map(|(name, row)| (name.clone(), established(row)));
    counts.collect()
}

/// What the run found about a target. Connect times only by their number: either watch looks at the clock by itself, and
/// everything else comes from the kernel's own measurements.
fn findings(rows: &BTreeMap<String, &Value>) -> Vec<Value> {
    let all = rows.values().filter_map(|row| row["findings"].as_array());
    let told = |finding: &Value| match finding["id"].as_str() {
        Some("connect-time") => json!([finding["id"], finding["n"], finding["state"]]),
        _ => finding.clone(),
    };
    all.flatten().map(told).collect()
}

fn verdict(finished: &Finished) -> Result<Value> {
    ensure!(finished.code == Some(0), "{finished:?}");
    lines(finished, "verdict")?.pop().context("no verdict")
}

#[test]
fn each_process_has_its_rows_and_the_verdict_is_the_targets() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(0).spare_nodes(1).start()?;
    lab.set_rtt(Duration::from_millis(5));
    let server = lab.spare_nodes[0].at(2379);
    let listener = lab.spare_nodes[0]
        .namespace
        .enter(|| TcpListener::bind(server))??;
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || std::io::copy(&mut &stream, &mut &stream));
        }
    });
    let folder = scratch_dir()?;
    let path = |name: &str| folder.path().join(name);
    let (hlog, textfile) = (path("rtt.hlog"), path("joinprobe.prom"));
    let common = ["watch", "-o", "json", "--interval", "10m", "--no-discovery"];
    let outputs = [
        "--by",
        "process",
        "--hlog",
        hlog.to_str().context("no path")?,
        "--textfile",
        textfile.to_str().context("no path")?,
    ];
    let mut watches = [
        lab.start_joinprobe(common)?,
        lab.start_joinprobe(common.into_iter().chain(outputs))?,
    ];
    for watch in &mut watches {
        watch.wait_ready()?;
    }
    converse(&lab, server)?;
    std::thread::sleep(Duration::from_millis(500));
    let [together, apart] = watches.map(|watch| {
        watch.signal(Signal::TERM)?;
        watch.wait()
    });
    let (together, apart) = (together?, apart?);
    let (one, each) = (verdict(&together)?, verdict(&apart)?);

    let (whole, parts) = (rows(&one, server), rows(&each, server));
    assert_eq!(counted(&whole), [(String::new(), 28)]);
    let mut expected = PROGRAMS.map(|(name, times)| (name.to_owned(), times));
    expected.sort();
    assert_eq!(counted(&parts), expected, "{apart:?}");
    for (name, row) in &parts {
        let times = PROGRAMS.iter().find(|(known, _)| known == name);
        assert_eq!(row["handshake"]["count"].as_u64(), times.map(|(_, n)| *n));
        ensure!(row["segment"]["count"].as_u64() > Some(0), "{row}");
        ensure!(row["handshake"]["p50_us"].as_u64() > Some(5_000), "{row}");
        assert_eq!(row["verdict"], whole[""]["verdict"]);
    }
    // Limits are held against all samples of the target, whoever connected.
    assert_eq!(findings(&parts), findings(&whole));
    assert_eq!(one["verdict"], each["verdict"]);
    assert_eq!(
        counted(&rows(&lines(&apart, "interval")?[0], server)),
        expected
    );
    for event in lines(&apart, "event")? {
        let name = event["process"]["name"].as_str().unwrap_or_default();
        ensure!(
            parts.contains_key(name) || event["side"] == "server",
            "{event}"
        );
    }

    let metrics = fs::read_to_string(&textfile)?;
    for (name, times) in PROGRAMS {
        let line = format!(
            "joinprobe_tcp_handshake_rtt_seconds_count{{role=\"etcd-client\",target=\"{server}\",side=\"client\",process=\"{name}\"}} {times}"
        );
        ensure!(
            metrics.lines().any(|found| found == line),
            "{line}: {metrics}"
        );
    }
    let report = Command::new(binary()?)
        .args(["report", "--json"])
        .arg(&hlog)
        .output()?;
    let report: Value = serde_json::from_slice(&report.stdout)?;
    let handshakes: BTreeMap<_, _> = report["measures"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|row| row["measure"] == "handshake" && row["side"] == "client")
        .map(|row| (row["process"]["name"].as_str(), row["count"].as_u64()))
        .collect();
    let expected = PROGRAMS.map(|(name, times)| (Some(name), Some(times)));
    assert_eq!(handshakes, expected.into());
    Ok(())
}
