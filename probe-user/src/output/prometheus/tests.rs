//! The endpoint as a scraper sees it, and the textfile as node_exporter does.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Listen, Textfile};
use crate::output::{ExportError, Exporter as _, samples};

const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// An endpoint on a free port, with one interval reported.
fn endpoint() -> (Listen, SocketAddr) {
    let mut listen = Listen::new(LOCAL, Duration::from_secs(10));
    listen.start().unwrap();
    listen.interval(&samples::interval()).unwrap();
    let address = listen.bound().unwrap();
    (listen, address)
}

/// Sends `request` and returns everything that comes back.
async fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A reset after a refused request is an answer too.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

async fn get(address: SocketAddr, path: &str, accept: &str) -> (String, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n\r\n");
    let answer = ask(address, &request).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_ascii_lowercase(), body.to_owned())
}

/// Without the version and all but one target, which would only repeat themselves.
fn essence(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.contains("target=") || line.contains("etcd-client"));
    let version = format!("version=\"{}\"", env!("CARGO_PKG_VERSION"));
    let text: Vec<_> = lines
        .map(|line| line.replace(&version, "version=\"…\""))
        .collect();
    text.join("\n")
}

#[tokio::test]
async fn connections_from_before_have_metrics_of_their_own() {
    let mut report = samples::interval();
    report.totals[0].adopted = 2;
    report.totals[1].sampled = Some(Box::new(samples::sampled().into()));
    let mut listen = Listen::new(LOCAL, Duration::from_secs(10));
    listen.start().unwrap();
    listen.interval(&report).unwrap();
    let (_, text) = get(listen.bound().unwrap(), "/metrics", "*/*").await;
    let target = "role=\"etcd-client\",target=\"10.1.0.2:2379\",side=\"client\"";
    let sampled =
        "role=\"etcd-peer\",target=\"[fd00::2]:2380\",side=\"client\",source=\"sock_diag\"";
    for line in [
        format!("joinprobe_connections_adopted_total{{{target}}} 2"),
        format!("joinprobe_connections_sampled{{{sampled}}} 2"),
        format!("joinprobe_tcp_sampled_rtt_seconds_count{{{sampled}}} 2"),
        format!("joinprobe_tcp_sampled_min_rtt_seconds_count{{{sampled}}} 2"),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
}

#[tokio::test]
async fn processes_are_series_of_their_own_and_share_a_verdict() {
    let (mut listen, address) = endpoint();
    listen.interval(&samples::interval_by_process(1)).unwrap();
    let (_, text) = get(address, "/metrics", "*/*").await;
    let target = "role=\"etcd-client\",target=\"10.1.0.2:2379\",side=\"client\"";
    for process in [
        "",
        ",process=\"etcd\"",
        ",process=\"a;b, \\\"c\\\"\\\\u{1b}<d>\\\\xff\"",
    ] {
        for line in [
            format!("joinprobe_tcp_handshake_rtt_seconds_count{{{target}{process}}} 6"),
            format!("joinprobe_tcp_retransmits_total{{{target}{process}}} 3"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }
    // Of a verdict per process, a join by target would have several.
    let verdict = "joinprobe_target_verdict{";
    let verdicts = text.lines().filter(|line| line.starts_with(verdict));
    assert_eq!(verdicts.count(), 8, "{text}");
    assert!(
        text.contains(&format!("{verdict}{target},state=\"pass\"}} 1")),
        "{text}"
    );
}

#[tokio::test]
async fn each_format_is_served_to_who_asks_for_it() {
    let (_listen, address) = endpoint();
    let (head, text) = get(address, "/metrics", "*/*").await;
    assert!(
        head.contains("200 ok") && head.contains("version=0.0.4"),
        "{head}"
    );
    insta::assert_snapshot!("text", essence(&text));
    let (head, open) = get(address, "/metrics", "application/openmetrics-text").await;
    assert!(head.contains("application/openmetrics-text"), "{head}");
    insta::assert_snapshot!("openmetrics", essence(&open));
    let protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
    let (head, body) = get(address, "/metrics", protobuf).await;
    assert!(head.contains("application/vnd.google.protobuf"), "{head}");
    assert!(body.contains("joinprobe_tcp_handshake_rtt_seconds"));
}

#[tokio::test]
async fn targets_of_the_same_name_are_one_series() {
    let (mut listen, address) = endpoint();
    let mut twice = samples::interval();
    twice.totals.push(twice.totals[0].clone());
    listen.interval(&twice).unwrap();
    let (_, text) = get(address, "/metrics", "*/*").await;
    let of = |name: &str| -> Vec<_> {
        let lines = text.lines().filter(|line| line.starts_with(name));
        lines
            .filter(|line| line.contains("etcd-client"))
            .map(|line| line.rsplit_once(' ').unwrap().1)
            .collect()
    };
    assert_eq!(of("joinprobe_tcp_handshake_rtt_seconds_count"), ["12"]);
    assert_eq!(of("joinprobe_tcp_retransmits_total"), ["6"]);
}

#[tokio::test]
async fn other_requests_get_a_short_answer() {
    let (_listen, address) = endpoint();
    assert!(get(address, "/healthz", "*/*").await.0.contains("200 ok"));
    assert!(get(address, "/", "*/*").await.0.contains("404"));
    for (request, status) in [
        (
            "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
            "405",
        ),
        ("nonsense\r\n\r\n", "400"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ""),
    ] {
        let answer = ask(address, request).await;
        assert!(answer.contains(status), "{request}: {answer}");
    }
    let huge = format!(
        "GET /metrics HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n",
        "y".repeat(1 << 20)
    );
    let answer = ask(address, &huge).await;
    assert!(answer.is_empty() || answer.contains("431"), "{answer}");
    let head = ask(address, "HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(
        head.contains("200 OK") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
}

#[tokio::test]
async fn slow_scrapers_hold_up_neither_reports_nor_each_other() {
    let (mut listen, address) = endpoint();
    let mut slow = Vec::new();
    for _ in 0..40 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\n")
            .await
            .unwrap();
        slow.push(stream);
    }
    let start = Instant::now();
    listen.interval(&samples::interval_number(2)).unwrap();
    let (head, text) = get(address, "/metrics", "*/*").await;
    assert!(head.contains("200 ok"), "{head}");
    assert!(text.contains("outcome=\"established\"} 12\n"), "{text}");
    assert!(start.elapsed() < Duration::from_secs(3));
    // The slow ones are cut off once their time is up.
    let mut rest = Vec::new();
    let cut = slow[39].read_to_end(&mut rest);
    tokio::time::timeout(Duration::from_secs(20), cut)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_taken_port_is_tried_again() {
    let holder = std::net::TcpListener::bind(LOCAL).unwrap();
    let mut listen = Listen::new(holder.local_addr().unwrap(), Duration::from_secs(10));
    let error = listen.start().unwrap_err().to_string();
    assert!(
        error.contains("in use") && error.contains("choose another port"),
        "{error}"
    );
    listen.interval(&samples::interval()).unwrap_err();
    drop(holder);
    listen.interval(&samples::interval()).unwrap();
    assert!(
        get(listen.bound().unwrap(), "/healthz", "*/*")
            .await
            .0
            .contains("200")
    );
}

#[tokio::test]
async fn health_turns_bad_when_reports_stop() {
    let mut listen = Listen::new(LOCAL, Duration::ZERO);
    listen.start().unwrap();
    listen.shared.age(Duration::from_secs(6));
    let (head, body) = get(listen.bound().unwrap(), "/healthz", "*/*").await;
    assert!(
        head.contains("503") && body.contains("no report for 6 s"),
        "{head} {body}"
    );
}

/// An empty folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("joinprobe-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_textfile_of_another_name_is_refused_with_a_better_one() {
    let error = Textfile::new("/tmp/x.txt".as_ref()).unwrap_err();
    assert!(error.to_string().ends_with("/tmp/x.prom"), "{error}");
}

#[test]
fn the_textfile_is_replaced_whole_and_readable() {
    let folder = Folder::new("textfile");
    let path = folder.0.join("joinprobe.prom");
    let mut textfile = Textfile::new(&path).unwrap();
    textfile.interval(&samples::interval()).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("\njoinprobe_verdict{state=\"pass\"} 1\n"),
        "{text}"
    );
    assert!(!text.contains(" info\n"), "{text}");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    textfile.verdict(&samples::verdict()).unwrap();
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
    // Every sample line is a name, labels and one value: no time stamp.
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let value = line.rsplit_once(['}', ' ']).unwrap().1.trim();
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}

#[test]
fn a_vanished_folder_is_said_and_tried_again() {
    let folder = Folder::new("vanishing");
    let inner = folder.0.join("collector");
    std::fs::create_dir(&inner).unwrap();
    let mut textfile = Textfile::new(&inner.join("joinprobe.prom")).unwrap();
    textfile.interval(&samples::interval()).unwrap();
    std::fs::remove_dir_all(&inner).unwrap();
    let error = textfile.interval(&samples::interval()).unwrap_err();
    assert!(matches!(error, ExportError::Io { .. }));
    assert!(
        error.to_string().contains("create the folder again"),
        "{error}"
    );
    std::fs::create_dir(&inner).unwrap();
    textfile.interval(&samples::interval()).unwrap();
}

#[test]
fn a_name_that_node_exporter_does_not_read_is_refused() {
    for name in ["joinprobe", "joinprobe.txt", ".prom", "/"] {
        let error = Textfile::new(name.as_ref()).unwrap_err().to_string();
        assert!(error.contains(".prom") && error.contains(name), "{error}");
    }
}
