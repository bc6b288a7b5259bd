//! The configuration for node-problem-detector, by the rules it refuses one for.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser as _;
use probe_user::cli::{Args, Command, OutputFormat};
use serde_json::Value;

const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../docs/monitoring/npd-joinprobe.json"
);

fn duration(config: &Value, pointer: &str) -> Result<Duration> {
    let text = config.pointer(pointer).and_then(Value::as_str);
    let text = text.with_context(|| format!("no duration at {pointer}"))?;
    Ok(humantime::parse_duration(text)?)
}

/// What its `ApplyConfiguration` and `Validate` demand, and that nothing in the file is a word it does not know.
fn check(config: &Value) -> Result<()> {
    let known = |value: &Value, fields: &[&str]| -> Result<()> {
        for field in value.as_object().context("no object")?.keys() {
            ensure!(fields.contains(&field.as_str()), "unknown field {field}");
        }
        Ok(())
    };
    known(
        config,
        &[
            "plugin",
            "pluginConfig",
            "source",
            "metricsReporting",
            "conditions",
            "rules",
        ],
    )?;
    ensure!(config["plugin"] == "custom", "plugin is not custom");
    let global = &config["pluginConfig"];
    known(
        global,
        &[
            "invoke_interval",
            "timeout",
            "max_output_length",
            "concurrency",
            "enable_message_change_based_condition_update",
            "skip_initial_status",
        ],
    )?;
    let timeout = duration(global, "/timeout")?;
    ensure!(timeout < duration(global, "/invoke_interval")?);
    let conditions = config["conditions"].as_array().context("conditions")?;
    for condition in conditions {
        known(condition, &["type", "reason", "message"])?;
        ensure!(condition["type"].is_string() && condition["message"].is_string());
        ensure!(is_reason(&condition["reason"]), "reason is not CamelCase");
    }
    let rules = config["rules"].as_array().context("rules")?;
    ensure!(!rules.is_empty(), "no rules");
    for rule in rules {
        known(
            rule,
            &["type", "condition", "reason", "path", "args", "timeout"],
        )?;
        ensure!(
            duration(rule, "/timeout")? <= timeout,
            "rule timeout above the global one"
        );
        ensure!(is_reason(&rule["reason"]), "reason is not CamelCase");
        let kind = rule["type"].as_str().unwrap_or_default();
        ensure!(["temporary", "permanent"].contains(&kind), "type {kind}");
        ensure!(
            kind != "permanent" || conditions.iter().any(|c| c["type"] == rule["condition"]),
            "a permanent rule without its default condition"
        );
        ensure!(Path::new(rule["path"].as_str().unwrap_or_default()).is_absolute());
    }
    Ok(())
}

/// Kubernetes takes a condition's reason only as one word.
fn is_reason(reason: &Value) -> bool {
    reason.as_str().is_some_and(|reason| {
        reason.starts_with(|c: char| c.is_ascii_uppercase())
            && reason.chars().all(|c| c.is_ascii_alphanumeric())
    })
}

#[test]
fn the_shipped_configuration_keeps_the_detectors_rules() -> Result<()> {
    let config: Value = serde_json::from_str(&fs::read_to_string(FILE)?)?;
    check(&config)?;
    let kept = config["pluginConfig"]["max_output_length"].as_u64();
    assert_eq!(kept, u64::try_from(probe_user::output::NPD_MESSAGE).ok());
    for rule in config["rules"].as_array().context("rules")? {
        let arguments = rule["args"].as_array().context("args")?;
        let arguments = arguments.iter().filter_map(Value::as_str);
        let args = Args::try_parse_from(std::iter::once("joinprobe").chain(arguments))?;
        let Command::Preflight(preflight) = args.command else {
            anyhow::bail!("not a preflight: {rule}");
        };
        assert_eq!(preflight.output, OutputFormat::Npd);
        // The detector kills what is late, and then there is no message.
        assert!(
            preflight.probing.timeout + preflight.probing.retry_for < duration(rule, "/timeout")?
        );
    }
    Ok(())
}

#[test]
fn the_rules_refuse_what_the_detector_refuses() -> Result<()> {
    let good: Value = serde_json::from_str(&fs::read_to_string(FILE)?)?;
    for (pointer, value) in [
        ("/plugin", "journald"),
        ("/rules/0/timeout", "21s"),
        ("/rules/0/condition", "Other"),
        ("/rules/0/reason", "not one word"),
        ("/pluginConfig/timeout", "soon"),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).context(pointer)? = value.into();
        assert!(check(&bad).is_err(), "{pointer}");
    }
    Ok(())
}
