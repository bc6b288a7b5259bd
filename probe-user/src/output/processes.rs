//! Every format keeps the processes of one target apart, and says once what is about the target.

use super::{
    Exporter as _, HistogramLog, Junit, LiveTable, Marks, Nagios, Render, Short, Table, samples,
};
use crate::exit::Leniency;

/// How [`samples::PROCESSES`]' odd name is written.
const ODD: &str = r#"a;b, "c"\u{1b}<d>\xff"#;

fn rendered(render: &impl Render) -> String {
    let mut out = Vec::new();
    let report = samples::verdict_by_process();
    render.write(&report, &mut out).unwrap();
    anstream::adapter::strip_bytes(&out)
        .into_vec()
        .try_into()
        .unwrap()
}

#[test]
fn the_live_table_has_a_column_for_them() {
    let mut out = Vec::new();
    let table = Table {
        marks: Marks::Ascii,
    };
    let mut live = LiveTable::new(table, &mut out, None);
    live.interval(&samples::interval_by_process(1)).unwrap();
    drop(live);
    let text = String::from_utf8(out).unwrap();
    let rows: Vec<_> = text.lines().skip(1).collect();
    let at = rows[0].find("process").unwrap();
    let cells: Vec<_> = rows[1..].iter().map(|row| &row[at..]).collect();
    assert!(cells[0].starts_with("-  "), "{text}");
    assert!(cells[1].starts_with("etcd  "), "{text}");
    assert!(cells[2].starts_with(ODD), "{text}");
    assert!(cells[3].starts_with("etcd  "), "{text}");
}

#[test]
fn the_table_tells_each_below_its_target() {
    let text = rendered(&Table {
        marks: Marks::Ascii,
    });
    assert_eq!(text.matches("etcd-client 10.1.0.2:2379\n").count(), 1);
    assert_eq!(text.matches("is within 50 ms").count(), 2, "{text}");
    for (name, times) in [("not known", 1), ("etcd", 2), (ODD, 1)] {
        let line = format!(
            "-- process {name}: 6 connections, 1 failed, handshake p50 10.2 ms (n=6), segment p50 10.6"
        );
        assert_eq!(text.matches(&line).count(), times, "{name}: {text}");
    }
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn json_names_them_as_events_do() {
    let line = serde_json::to_value(samples::interval_by_process(1)).unwrap();
    joinprobe_lab::schema::check_lines(&line.to_string()).unwrap();
    for rows in ["targets", "totals"] {
        let names: Vec<_> = (0..4)
            .map(|row| line[rows][row]["process"].clone())
            .collect();
        let process = |name: &str| serde_json::json!({ "name": name });
        let expected = [
            serde_json::Value::Null,
            process("etcd"),
            process(ODD),
            process("etcd"),
        ];
        assert_eq!(names, expected);
    }
    let of_all = serde_json::to_value(samples::interval()).unwrap();
    assert!(of_all["targets"][0].get("process").is_none());
}

#[test]
fn a_target_is_one_of_its_kind_whoever_connects() {
    assert!(rendered(&Short).contains("(2 targets in"));
    let junit = rendered(&Junit {
        leniency: Leniency::default(),
    });
    assert_eq!(junit.matches("<testsuite ").count(), 3, "{junit}");
}

#[test]
fn performance_data_is_of_targets_then_of_processes() {
    let text = rendered(&Nagios {
        leniency: Leniency::default(),
    });
    let odd = r#"'etcd-client 10.1.0.2:2379 a;b, "c"\u{1b}<d>\xff segment_p50'="#;
    for label in [
        "'etcd-client 10.1.0.2:2379 handshake_p50'=0.010111s;0.05;0.1;0",
        "'etcd-client 10.1.0.2:2379 etcd handshake_p50'=",
        odd,
        "'apiserver 10.1.0.9:6443 etcd segment_min_p50'=",
    ] {
        assert_eq!(text.matches(label).count(), 1, "{label}: {text}");
    }
}

#[test]
fn the_interval_log_has_lines_for_each() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rtt.hlog");
    let mut log = HistogramLog::new(&path);
    log.interval(&samples::interval_by_process(1)).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    for (tag, lines) in [
        ("side=client;measure=", 4),
        ("side=client;process=etcd;measure=", 8),
        (
            r#"side=client;process=a\x3bb\x2c\x20"c"\u{1b}<d>\xff;measure="#,
            4,
        ),
    ] {
        assert_eq!(text.matches(tag).count(), lines, "{tag}: {text}");
    }
}
