use std::collections::BTreeMap;
use std::time::Duration;

use clap::{CommandFactory as _, FromArgMatches as _};

use super::*;
use crate::cli::Args;

fn completed(
    typed: &str,
    variables: &[(&str, &str)],
    file: Option<&str>,
) -> Result<(Args, Origins), String> {
    let folder = tempfile::tempdir().unwrap();
    let mut arguments: Vec<OsString> = vec!["joinprobe".into()];
    arguments.extend(typed.split_whitespace().map(OsString::from));
    if let Some(text) = file {
        let path = folder.path().join("joinprobe.yaml");
        std::fs::write(&path, text).unwrap();
        arguments.push("--config".into());
        arguments.push(path.into());
    }
    let variables: BTreeMap<_, _> = variables.iter().copied().collect();
    let completed = complete(&mut Args::command(), arguments, |name| {
        variables.get(name).map(OsString::from)
    })
    .map_err(|error| error.to_string())?;
    let args = Args::from_arg_matches(&completed.matches).map_err(|error| error.to_string())?;
    Ok((args, completed.origins))
}

fn preflight(
    typed: &str,
    variables: &[(&str, &str)],
    file: Option<&str>,
) -> (Box<crate::cli::PreflightArgs>, Origins) {
    let (args, origins) = completed(typed, variables, file).unwrap();
    let crate::cli::Command::Preflight(args) = args.command else {
        panic!("not preflight");
    };
    (args, origins)
}

#[test]
fn typed_wins_over_environment_and_environment_over_file() {
    let file = "etcd: [c:1, d:1]\netcd-peer: e:1\ntimeout: 3s\nstrict: true\n";
    let variables = [
        ("JOINPROBE_ETCD", "b:1, b:2"),
        ("JOINPROBE_APISERVER", "x:1"),
        ("JOINPROBE_TIMEOUT", "2s"),
    ];
    let (args, origins) = preflight("preflight --etcd a:1", &variables, Some(file));
    assert_eq!(args.probing.etcd, ["a:1"]);
    assert_eq!(args.probing.apiserver, ["x:1"]);
    assert_eq!(args.probing.etcd_peer, ["e:1"]);
    assert_eq!(args.probing.timeout, Duration::from_secs(2));
    assert!(args.decision.strict);
    assert_eq!(origins.of("etcd").to_string(), "--etcd");
    assert_eq!(
        origins.of("apiserver").to_string(),
        "environment variable JOINPROBE_APISERVER"
    );
    let peer = origins.of("etcd-peer").to_string();
    assert!(peer.ends_with("joinprobe.yaml (etcd-peer)"), "{peer}");
    let (args, _) = preflight("preflight", &variables, Some(file));
    assert_eq!(args.probing.etcd, ["b:1", "b:2"]);
}

#[test]
fn global_flags_too_and_wherever_the_subcommand_stands() {
    for typed in ["--color never preflight", "preflight --color never"] {
        let (args, _) = completed(
            typed,
            &[
                ("JOINPROBE_NODE_NAME", "preflight"),
                ("JOINPROBE_VERBOSE", "2"),
            ],
            Some("bpf-log: yes\n"),
        )
        .unwrap();
        assert_eq!(args.global.node_name.as_deref(), Some("preflight"));
        assert_eq!(args.global.verbose, 2);
        assert!(args.global.bpf_log);
    }
    // A value that reads like the subcommand is not mistaken for it.
    let (args, _) = completed(
        "--node-name preflight preflight",
        &[("JOINPROBE_ETCD", "a:1")],
        None,
    )
    .unwrap();
    assert_eq!(args.global.node_name.as_deref(), Some("preflight"));
}

#[test]
fn file_by_variable_and_empty_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    std::fs::write(&path, "strict: false\nworker:\netcd: []\ntimeout: 5s\n").unwrap();
    let (args, _) = preflight(
        "preflight",
        &[
            ("JOINPROBE_CONFIG", path.to_str().unwrap()),
            ("JOINPROBE_STRICT", ""),
        ],
        None,
    );
    assert!(!args.decision.strict && !args.worker && args.probing.etcd.is_empty());
    assert_eq!(args.probing.timeout, Duration::from_secs(5));
}

#[test]
fn a_value_that_only_other_commands_take_does_no_harm() {
    for (variables, file) in [
        (&[("JOINPROBE_OUTPUT", "nagios")][..], None),
        (&[], Some("output: nagios\n")),
    ] {
        for typed in ["report x.json", "doctor"] {
            assert!(completed(typed, variables, file).is_ok(), "{typed}");
        }
        let (args, _) = preflight("preflight", variables, file);
        assert_eq!(args.output, crate::cli::OutputFormat::Nagios);
    }
    let (args, _) = completed("report x.json", &[("JOINPROBE_OUTPUT", "json")], None).unwrap();
    let crate::cli::Command::Report(args) = args.command else {
        panic!("not report");
    };
    assert_eq!(args.output, crate::cli::PlainFormat::Json);
    let wrong = completed("doctor", &[("JOINPROBE_OUTPUT", "foo")], None).unwrap_err();
    assert!(wrong.contains("JOINPROBE_OUTPUT"), "{wrong}");
}

#[test]
fn refusals_name_where_the_value_came_from() {
    for (variables, file, parts) in [
        (
            &[("JOINPROBE_TIMEOUT", "soon")][..],
            None,
            &["JOINPROBE_TIMEOUT", "unset"][..],
        ),
        (
            &[("JOINPROBE_STRICT", "maybe")],
            None,
            &["JOINPROBE_STRICT", "neither true nor"],
        ),
        (
            &[("JOINPROBE_COLOR", "red")],
            None,
            &["JOINPROBE_COLOR", "write auto or always"],
        ),
        (
            &[("JOINPROBE_VERBOSE", "x")],
            None,
            &["JOINPROBE_VERBOSE", "number"],
        ),
        (
            &[("JOINPROBE_CONFIG", "/nowhere.yaml")],
            None,
            &["/nowhere.yaml", "cannot read", "No such file or directory"],
        ),
        (
            &[],
            Some("timeout: soon"),
            &["timeout", "joinprobe.yaml, line 1"],
        ),
        (
            &[],
            Some("timeuot: 1s"),
            &[
                "joinprobe.yaml",
                "no flag of that name",
                "`timeout` is meant",
            ],
        ),
        (&[], Some("timeout: [1s, 2s]"), &["timeout", "one value"]),
        (
            &[],
            Some("timeout: {a: b}"),
            &["timeout", "a mapping where text"],
        ),
        (&[], Some("strict: maybe"), &["strict", "neither true nor"]),
        (
            &[],
            Some("config: other.yaml"),
            &["config", "no flag of that name"],
        ),
        (
            &[],
            Some("etcd: [a, [b]]"),
            &["etcd[1]", "a list where text"],
        ),
        (&[], Some("- etcd"), &["a list where a mapping"]),
        (&[], Some(""), &["joinprobe.yaml", "it is empty"]),
        (
            &[],
            Some("etcd: a:1\netcd: b:1"),
            &["joinprobe.yaml", "the same key"],
        ),
    ] {
        let error = completed("preflight", variables, file).unwrap_err();
        for part in parts {
            assert!(error.contains(part), "{error:?} lacks {part:?}");
        }
        assert!(!error.contains('\n'), "{error}");
    }
}
