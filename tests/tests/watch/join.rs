//! A fourth etcd member joins a real cluster under `joinprobe run`; every connection it makes or takes is counted.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use joinprobe_lab::capture::Recording;
use joinprobe_lab::etcd::{CLIENT_PORT, EtcdMember, PEER_PORT};
use joinprobe_lab::lab::APISERVER_PORT;
use joinprobe_lab::{Capture, Lab, attempts, on_time, take_turn};
use serde_json::Value;

use crate::lines::{attempted, established, quoted, verdict};

const RTT: Duration = Duration::from_millis(20);
const ROLES: [(&str, u16); 3] = [
    ("etcd-client", CLIENT_PORT),
    ("etcd-peer", PEER_PORT),
    ("apiserver", APISERVER_PORT),
];

#[test]
fn a_members_join_is_counted_whole() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd", "etcdctl", "tcpdump", "bash"])? else {
        return Ok(());
    };
    attempts(3, join)
}

fn join() -> Result<()> {
    let lab = Lab::builder().start()?;
    lab.set_rtt(RTT);
    let script = lab.folder().join("join");
    std::fs::write(&script, join_script(&lab)?)?;
    let report = lab.folder().join("report");
    let capture = Capture::start(&lab.joiner.namespace, "any")?;
    let finished = lab.run_joinprobe([
        "run".into(),
        "--allow-inconclusive".into(),
        "-ojson".into(),
        "--interval=2s".into(),
        "--report-file".into(),
        report.clone().into_os_string(),
        "--".into(),
        "bash".into(),
        script.into_os_string(),
    ])?;
    let recording = capture.stop()?;
    ensure!(finished.code == Some(0), "{finished:?}");
    ensure!(finished.stdout.contains("promoted"), "{finished:?}");
    let verdict = verdict(&std::fs::read_to_string(report)?)?;
    let targets = verdict["targets"].as_array().context("no targets")?;
    let own = |address: SocketAddr| address.ip().is_loopback() || is_of(&lab, address.ip());
    let flows = recording.flows();

    // Both kinds of connect, and both ends, so that none of the comparisons is between zeros.
    let of_outcome = |outcome: &str| -> u64 {
        targets
            .iter()
            .filter_map(|row| row["connections"][outcome].as_u64())
            .sum()
    };
    ensure!(of_outcome("refused") > 0, "{verdict}");
    for (role, port) in ROLES {
        let opened = flows
            .iter()
            .filter(|flow| own(flow.client) && flow.server.port() == port)
            .count();
        ensure!(opened > 0, "the capture shows no {role}");
        assert_eq!(
            sum(targets, role, "client", attempted),
            opened as u64,
            "{role}"
        );
        let taken = flows
            .iter()
            .filter(|flow| own(flow.server) && flow.server.port() == port)
            .filter(|flow| flow.is_established())
            .count();
        assert_eq!(
            sum(targets, role, "server", established),
            taken as u64,
            "{role}, accepted"
        );
    }
    ensure!(sum(targets, "etcd-peer", "server", established) > 0);
    ensure!(sum(targets, "etcd-client", "server", established) > 0);
    let across: Vec<&Value> = targets
        .iter()
        .filter(|row| row["side"] == "client")
        .filter(|row| address_of(row).is_ok_and(|address| !own(address)))
        .collect();
    let compared = medians_agree(&across, &recording)?;
    // Three members' client ports and, as peers, at least two of them.
    ensure!(compared >= 5, "only {compared} targets across the link");
    Ok(())
}

/// Holds the handshakes' median of every target against the capture's; returns how many had one.
fn medians_agree(targets: &[&Value], recording: &Recording) -> Result<usize> {
    let mut captured: BTreeMap<SocketAddr, Vec<Duration>> = BTreeMap::new();
    for flow in recording.flows() {
        captured
            .entry(flow.server)
            .or_default()
            .extend(flow.handshake_rtt());
    }
    let mut compared = 0;
    for row in targets {
        let address = address_of(row)?;
        let Some(p50_us) = row["handshake"]["p50_us"].as_u64() else {
            continue;
        };
        let rtts = captured
            .get_mut(&address)
            .with_context(|| format!("{address} is not in the capture"))?;
        rtts.sort_unstable();
        let middle = rtts[(rtts.len() - 1) / 2].as_micros();
        ensure!(middle >= RTT.as_micros(), "{address}: {middle} us");
        // Of few connections, that one may be the middle one which a busy kernel took up late.
        on_time(u128::from(p50_us).abs_diff(middle) * 20 <= middle, || {
            let count = rtts.len();
            format!("{address}: {p50_us} us, in the capture {middle} us (n={count})")
        })?;
        compared += 1;
    }
    Ok(compared)
}

fn address_of(row: &Value) -> Result<SocketAddr> {
    Ok(row["target"].as_str().context("no target")?.parse()?)
}

fn sum(targets: &[Value], role: &str, side: &str, count: impl Fn(&Value) -> u64) -> u64 {
    targets
        .iter()
        .filter(|row| row["role"] == role && row["side"] == side)
        .map(count)
        .sum()
}

fn is_of(lab: &Lab, address: IpAddr) -> bool {
    address == IpAddr::from(lab.joiner.v4) || address == IpAddr::from(lab.joiner.v6)
}

/// What kubeadm does about etcd, with etcd's own tools: health, `member add --learner`, start, promote.
fn join_script(lab: &Lab) -> Result<String> {
    let joiner = &lab.joiner;
    let endpoints: Vec<String> = lab
        .member_nodes
        .iter()
        .map(|node| format!("https://{}", node.at(CLIENT_PORT)))
        .collect();
    let mut cluster: Vec<String> = lab
        .member_nodes
        .iter()
        .chain([joiner])
        .map(|node| format!("{}=https://{}", node.name, node.at(PEER_PORT)))
        .collect();
    cluster.sort();
    let folder = lab.folder().join("joining");
    let etcd = EtcdMember::command(joiner, &lab.pki, &folder, &cluster.join(","), "existing")?;
    let mut member = quoted(&etcd.get_program().to_string_lossy());
    for word in etcd.get_args() {
        write!(member, " {}", quoted(&word.to_string_lossy()))?;
    }
    let client = &lab.pki.healthcheck_client;
    Ok(SCRIPT
        .replace(
            "@CTL@",
            &quoted(
                &joinprobe_lab::programs::command("etcdctl")
                    .get_program()
                    .to_string_lossy(),
            ),
        )
        .replace("@CA@", &lab.pki.etcd.pair.cert.display().to_string())
        .replace("@CERT@", &client.cert.display().to_string())
        .replace("@KEY@", &client.key.display().to_string())
        .replace("@MEMBERS@", &endpoints.join(","))
        .replace("@NAME@", &joiner.name)
        .replace("@PEER@", &format!("https://{}", joiner.at(PEER_PORT)))
        .replace(
            "@API@",
            &format!("{}/{APISERVER_PORT}", lab.apiserver_node.v4),
        )
        .replace("@ADDED@", &folder.join("added").display().to_string())
        .replace("@LOG@", &folder.join("log").display().to_string())
        .replace("@ETCD@", &member))
}

const SCRIPT: &str = r#"
set -eu
export ETCDCTL_API=3
ctl() { @CTL@ --cacert=@CA@ --cert=@CERT@ --key=@KEY@ --dial-timeout=2s --command-timeout=5s "$@"; }
again() { for _ in $(seq 100); do if "$@"; then return; fi; sleep 0.1; done; return 1; }
add() { ctl --endpoints=@MEMBERS@ member add @NAME@ --learner --peer-urls=@PEER@ >@ADDED@; }
echo "[preflight] Running pre-flight checks"
exec 3<>/dev/tcp/@API@; exec 3>&-
echo "[check-etcd] Checking that the etcd cluster is healthy"
ctl --endpoints=@MEMBERS@ endpoint health
# Nobody listens there yet.
ctl --endpoints=https://127.0.0.1:2379 --command-timeout=1s endpoint health || true
# A young cluster refuses until its members have been connected for five seconds.
again add
id=$(sed -n 's/^Member *\([0-9a-f]*\) added.*/\1/p' @ADDED@)
echo "[etcd] Announced new etcd member joining to the existing etcd cluster"
@ETCD@ 2>@LOG@ &
etcd=$!
trap 'kill -9 $etcd' EXIT
again ctl --endpoints=@MEMBERS@ member promote $id
again ctl --endpoints=https://127.0.0.1:2379 endpoint health
ctl --endpoints=@MEMBERS@ member list
echo "[mark-control-plane] Marking the node as control-plane"
sleep 1
trap - EXIT
kill -9 $etcd
wait || true
"#;
