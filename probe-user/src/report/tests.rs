//! Files written by the exporters, read again.

mod refused;

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{ReportError, run};
use crate::config::ReportConfig;
use crate::exit::Exit;
use crate::output::{Exporter as _, HistogramLog, JsonLines, Marks, samples};
use crate::verdict::Timing;

fn config(files: &[&Path]) -> ReportConfig {
    ReportConfig {
        files: files.iter().map(|path| path.to_path_buf()).collect(),
        per_node: false,
        html: None,
        json: false,
        timing: Timing::default(),
    }
}

fn report(config: &ReportConfig) -> Result<String, ReportError> {
    let mut out = Vec::new();
    run(config, Marks::Unicode, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

/// Two intervals and the verdict, as an interval log and as JSON lines.
fn files(folder: &TempDir) -> (PathBuf, PathBuf) {
    let hlog = folder.path().join("rtt.hlog");
    let json = folder.path().join("out.json");
    let mut log = HistogramLog::new(&hlog);
    let mut lines = JsonLines::new(fs::File::create(&json).unwrap());
    for n in 1..=2 {
        log.interval(&samples::interval_number(n)).unwrap();
        lines.interval(&samples::interval_number(n)).unwrap();
        lines.event(&samples::event()).unwrap();
    }
    log.verdict(&samples::verdict()).unwrap();
    lines.verdict(&samples::verdict()).unwrap();
    (hlog, json)
}

#[test]
fn both_formats_say_the_same_and_nothing_is_counted_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (hlog, json) = files(&folder);
    let table = |text: &str| text[text.find("\nhandshake").unwrap()..].to_owned();
    let from_log = report(&config(&[&hlog])).unwrap();
    insta::assert_snapshot!(table(&from_log));
    let from_json = report(&config(&[&json])).unwrap();
    assert_eq!(table(&from_json), table(&from_log));
    assert!(from_json.contains("verdict of cp-4"), "{from_json}");
    let both = report(&config(&[&hlog, &json])).unwrap();
    assert_eq!(table(&both), table(&from_log));
    assert!(both.contains("in more than one file"), "{both}");
}

#[test]
fn what_is_only_sampled_stands_apart() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, _) = files(&folder);
    let plain = report(&config(&[&plain])).unwrap();
    let hlog = folder.path().join("sampled.hlog");
    let json = folder.path().join("sampled.json");
    let mut log = HistogramLog::new(&hlog);
    let mut lines = JsonLines::new(fs::File::create(&json).unwrap());
    for n in 1..=2 {
        let mut interval = samples::interval_number(n);
        interval.targets[0].measured.sampled = Some(Box::new(samples::sampled().into()));
        log.interval(&interval).unwrap();
        lines.interval(&interval).unwrap();
    }
    let rows = |text: &str, values: &str| -> Vec<String> {
        let from = text.split(&format!("\n{values}: ")).nth(1);
        let table = from.unwrap_or_else(|| panic!("no {values}: {text}"));
        let rows = table
            .lines()
            .skip(2)
            .take_while(|line| line.starts_with("  "));
        rows.map(str::to_owned).collect()
    };
    for path in [&hlog, &json] {
        let text = report(&config(&[path])).unwrap();
        // Two values an interval.
        for (values, median) in [
            ("sampled_smoothed", "10.3 ms"),
            ("sampled_minimum", "10.1 ms"),
        ] {
            let rows = rows(&text, values);
            // All in all, and in the one phase.
            assert_eq!(rows.len(), 2, "{text}");
            assert!(
                rows[0].contains(" 4 ") && rows[0].contains(median),
                "{}",
                rows[0]
            );
            assert!(!plain.contains(values), "{plain}");
        }
        for measure in ["handshake", "connect", "segment", "segment_min"] {
            assert_eq!(rows(&text, measure), rows(&plain, measure));
        }
        let line = report(&ReportConfig {
            json: true,
            ..config(&[path])
        });
        joinprobe_lab::schema::check_lines(&line.unwrap()).unwrap();
    }
}

#[test]
fn raft_timing_is_recommended_in_text_and_json() {
    let folder = tempfile::tempdir().unwrap();
    let (hlog, _) = files(&folder);
    let text = report(&config(&[&hlog])).unwrap();
    assert!(
        text.contains(
            "raft timing: heartbeat 100 ms and election timeout 1000 ms (etcd defaults) fit"
        ),
        "{text}"
    );
    assert!(text.contains("rule: heartbeat: 2 x"), "{text}");
    let config = ReportConfig {
        json: true,
        timing: Timing {
            heartbeat: std::time::Duration::from_millis(10),
            ..Timing::default()
        },
        ..config(&[&hlog])
    };
    let line = report(&config).unwrap();
    joinprobe_lab::schema::check_lines(&line).unwrap();
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    let made = &value["recommendation"];
    assert_eq!(made["heartbeat_us"], 100_000);
    assert_eq!(made["today"]["heartbeat"], "too_short");
    assert_eq!(made["today"]["election"], "fits");
    assert!(
        value["measures"]
            .as_array()
            .is_some_and(|rows| !rows.is_empty())
    );
}

#[test]
fn processes_stay_apart_in_both_formats() {
    let folder = tempfile::tempdir().unwrap();
    let hlog = folder.path().join("rtt.hlog");
    let json = folder.path().join("out.json");
    let mut log = HistogramLog::new(&hlog);
    let mut lines = JsonLines::new(fs::File::create(&json).unwrap());
    for n in 1..=2 {
        log.interval(&samples::interval_by_process(n)).unwrap();
        lines.interval(&samples::interval_by_process(n)).unwrap();
    }
    lines.verdict(&samples::verdict_by_process()).unwrap();
    let odd = r#"a;b, "c"\u{1b}<d>\xff"#;
    let one_line = ReportConfig {
        json: true,
        ..config(&[&hlog, &json])
    };
    let line = report(&one_line).unwrap();
    joinprobe_lab::schema::check_lines(&line).unwrap();
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    let handshakes: Vec<_> = value["measures"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["measure"] == "handshake" && row["role"] == "etcd-client")
        .map(|row| (row["process"]["name"].as_str(), row["count"].as_u64()))
        .collect();
    // What is in both files is counted once.
    assert_eq!(
        handshakes,
        [
            (None, Some(12)),
            (Some(odd), Some(12)),
            (Some("etcd"), Some(12))
        ]
    );
    let page = folder.path().join("report.html");
    let text = report(&ReportConfig {
        html: Some(page.clone()),
        ..config(&[&json])
    })
    .unwrap();
    let unknown = "2379 (process not known)";
    for name in ["2379 by etcd", &format!("2379 by {odd}"), unknown] {
        assert!(text.contains(name), "{name}: {text}");
    }
    // The recommendation is made from all of a member's samples.
    let advised = text
        .lines()
        .find(|line| line.starts_with("raft timing"))
        .unwrap();
    assert!(advised.contains("(n=36,"), "{advised}");
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains(r"\u{1b}&lt;d&gt;\xff") && !html.contains("<d>"));
}

#[test]
fn a_preflights_verdict_alone_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("preflight.json");
    JsonLines::new(fs::File::create(&path).unwrap())
        .verdict(&samples::verdict())
        .unwrap();
    let text = report(&config(&[&path])).unwrap();
    assert!(text.contains("etcd-client 10.1.0.2:2379"), "{text}");
}

#[test]
fn without_the_distribution_quantiles_are_not_made_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.json");
    let mut value = serde_json::to_value(samples::interval()).unwrap();
    for target in value["targets"].as_array_mut().unwrap() {
        for measure in ["handshake", "connect", "segment", "segment_min"] {
            target[measure].as_object_mut().unwrap().remove("hdr");
        }
    }
    fs::write(&path, value.to_string()).unwrap();
    let text = report(&config(&[&path])).unwrap();
    assert!(text.contains("came without their distribution"), "{text}");
    let row = text
        .lines()
        .find(|line| line.contains("etcd-client 10"))
        .unwrap();
    assert!(
        row.split_whitespace().filter(|word| *word == "-").count() == 3,
        "{row}"
    );
}

#[test]
fn half_a_line_at_the_end_costs_only_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (hlog, json) = files(&folder);
    for path in [hlog, json] {
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 60]).unwrap();
        assert!(report(&config(&[&path])).is_ok());
    }
}

#[test]
fn the_page_needs_nothing_but_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (hlog, _) = files(&folder);
    let evil = fs::read_to_string(&hlog)
        .unwrap()
        .replace("node=cp-4", "node=<script>alert(1)</script>&\u{1b}[2J");
    fs::write(&hlog, evil).unwrap();
    let page = folder.path().join("report.html");
    let text = report(&ReportConfig {
        html: Some(page.clone()),
        per_node: true,
        ..config(&[&hlog])
    })
    .unwrap();
    assert!(
        !text[text.find("\nhandshake").unwrap()..].contains('\u{1b}'),
        "{text}"
    );
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("&lt;script&gt;") && !html.contains("<script"));
    // Four measures, two charts each.
    assert_eq!(html.matches("<svg").count(), 8);
    for outside in ["src=", "href=", "url(", "@import"] {
        assert!(!html.contains(outside), "{outside}");
    }
    // A name space is no resource.
    let addresses = html.matches("http").count();
    let name_spaces = html.matches("http://www.w3.org/2000/svg").count();
    assert_eq!(addresses, name_spaces + html.matches("http-equiv").count());
    let nowhere = ReportConfig {
        html: Some("/no/such/folder/x.html".into()),
        ..config(&[&hlog])
    };
    assert_eq!(report(&nowhere).unwrap_err().exit(), Exit::Usage);
}

#[test]
fn a_verdict_is_shown_once_and_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    let mut value = serde_json::to_value(samples::verdict()).unwrap();
    value["verdict"] = "fail".into();
    value["targets"][0]["findings"] = serde_json::json!([
        {"id": "tls", "state": "pass", "text": "all is well"},
        {"id": "etcd-path-rtt-median", "state": "fail", "text": "median path RTT 130 ms is above the limit"},
    ]);
    fs::write(&path, value.to_string()).unwrap();
    let copy = folder.path().join("copy.json");
    fs::copy(&path, &copy).unwrap();
    let text = report(&config(&[&path, &copy])).unwrap();
    let verdicts: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("verdict of"))
        .collect();
    let target = value["targets"][0]["target"].as_str().unwrap();
    assert_eq!(verdicts.len(), 1, "{text}");
    assert!(
        verdicts[0].ends_with(&format!(
            "fail: etcd-client {target}: median path RTT 130 ms is above the limit"
        )),
        "{text}"
    );
    let line = report(&ReportConfig {
        json: true,
        ..config(&[&path, &copy])
    })
    .unwrap();
    joinprobe_lab::schema::check_lines(&line).unwrap();
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(value["verdicts"].as_array().map(Vec::len), Some(1));
    assert!(
        value["verdicts"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("130 ms")
    );
    assert!(value["duplicates"].as_u64().is_some_and(|n| n > 0));
}
