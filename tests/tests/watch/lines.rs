//! What a watch printed.

use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use joinprobe_lab::lab::Finished;
use serde_json::Value;

/// Every JSON line of a kind on standard output.
pub(crate) fn lines(finished: &Finished, kind: &str) -> Result<Vec<Value>> {
    of_kind(&finished.stdout, kind).with_context(|| format!("{finished:?}"))
}

/// Every JSON line of a kind.
pub(crate) fn of_kind(text: &str, kind: &str) -> Result<Vec<Value>> {
    let lines: Vec<Value> = text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    Ok(lines
        .into_iter()
        .filter(|line| line["kind"] == kind)
        .collect())
}

/// The verdict among JSON lines.
pub(crate) fn verdict(text: &str) -> Result<Value> {
    of_kind(text, "verdict")?
        .pop()
        .with_context(|| format!("no verdict in {text}"))
}

/// All attempts of a row: those that were established and those that failed.
pub(crate) fn attempted(row: &Value) -> u64 {
    let outcomes = [
        "established",
        "refused",
        "timed_out",
        "unreachable",
        "abandoned",
        "failed_unknown",
    ];
    outcomes
        .iter()
        .filter_map(|outcome| row["connections"][outcome].as_u64())
        .sum()
}

/// A word that a shell takes as it is.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// All connections that a verdict counts as established on the client side.
pub(crate) fn established_total(verdict: &Value) -> u64 {
    verdict["targets"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|row| row["side"] == "client")
        .map(established)
        .sum()
}

/// Connections of a row that were established.
pub(crate) fn established(row: &Value) -> u64 {
    row["connections"]["established"].as_u64().unwrap_or(0)
}

/// Gives a command no input, and pipes for its outputs.
pub(crate) fn piped(command: &mut Command) -> &mut Command {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
}
