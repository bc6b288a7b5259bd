//! A caller that reads only standard output learns why there is no verdict.

use std::process::{Command, Output};

use anyhow::Result;

/// Runs the binary without anything from the environment that could be a flag.
pub(crate) fn joinprobe(arguments: &str) -> Result<Output> {
    Ok(Command::new(env!("CARGO_BIN_EXE_joinprobe"))
        .args(arguments.split_whitespace())
        .env_remove("JOINPROBE_OUTPUT")
        .output()?)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_monitoring_plugin_answers_unknown() -> Result<()> {
    for (arguments, reason) in [
        (
            "preflight --etdc a:1 -o nagios",
            "unexpected argument '--etdc' found",
        ),
        ("preflight --no-discovery -o nagios", "no targets"),
        ("preflight --etcd a -o nagios", "port is missing"),
    ] {
        let output = joinprobe(arguments)?;
        let stdout = text(&output.stdout);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(stdout.starts_with("JOINPROBE UNKNOWN - "), "{stdout}");
        assert!(stdout.contains(reason), "{stdout}");
        assert_eq!(stdout.lines().count(), 1, "{stdout}");
        assert!(text(&output.stderr).contains(reason));
    }
    Ok(())
}

#[test]
fn node_problem_detector_gets_unknown() -> Result<()> {
    let output = joinprobe("preflight --no-discovery -o npd")?;
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let message = text(&output.stdout);
    assert!(message.starts_with("no targets"), "{message}");
    assert!(message.trim_end().len() <= probe_user::output::NPD_MESSAGE);
    Ok(())
}

#[test]
fn other_formats_keep_standard_output_for_results() -> Result<()> {
    for format in ["table", "json", "short", "junit"] {
        let output = joinprobe(&format!("preflight --no-discovery -o {format}"))?;
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        assert!(text(&output.stderr).contains("no targets"));
    }
    Ok(())
}

#[test]
fn help_is_no_error_in_any_format() -> Result<()> {
    let output = joinprobe("preflight -o nagios --help")?;
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN"));
    Ok(())
}

#[test]
fn a_misspelt_variable_is_warned_about_once() -> Result<()> {
    let output = Command::new(env!("CARGO_BIN_EXE_joinprobe"))
        .arg("schema")
        .env("JOINPROBE_ETCD_CA_CERT", "ca.crt")
        .env("JOINPROBE_BIN", "joinprobe")
        .output()?;
    assert!(output.status.success(), "{output:?}");
    let said = text(&output.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    for part in ["JOINPROBE_ETCD_CA_CERT", "JOINPROBE_ETCD_CACERT is meant"] {
        assert!(said.contains(part), "{said}");
    }
    Ok(())
}

#[test]
fn completions_know_commands_and_flags() -> Result<()> {
    for shell in ["bash", "zsh", "fish"] {
        let output = joinprobe(&format!("completions {shell}"))?;
        assert!(output.status.success(), "{output:?}");
        let script = text(&output.stdout);
        for word in ["preflight", "watch", "etcd-cacert"] {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
    let output = joinprobe("completions cmd")?;
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("possible values: bash"));
    Ok(())
}
