//! Holding joinprobe's JSON against its published schema.

use std::sync::LazyLock;

use anyhow::{Result, anyhow, ensure};
use jsonschema::Validator;
use serde_json::Value;

static SCHEMA: LazyLock<Result<Validator, String>> = LazyLock::new(|| {
    let schema: Value = serde_json::from_str(include_str!("../../docs/schema/joinprobe-v1.json"))
        .map_err(|error| format!("the schema is no JSON: {error}"))?;
    jsonschema::options()
        .should_validate_formats(true)
        .build(&schema)
        .map_err(|error| format!("the schema is no JSON Schema: {error}"))
});

/// Checks one value against docs/schema/joinprobe-v1.json.
///
/// # Errors
/// When it does not fit; with every place where it does not.
pub fn check(value: &Value) -> Result<()> {
    let schema = SCHEMA.as_ref().map_err(|error| anyhow!("{error}"))?;
    let errors: Vec<_> = schema
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    ensure!(errors.is_empty(), "not joinprobe/v1: {}", errors.join("; "));
    Ok(())
}

/// Checks every line of `text`, and gives them back.
///
/// # Errors
/// When a line is no JSON or does not fit; with the line.
pub fn check_lines(text: &str) -> Result<Vec<Value>> {
    text.lines()
        .map(|line| {
            let value = serde_json::from_str(line).map_err(|error| anyhow!("{error}: {line}"))?;
            check(&value)?;
            Ok(value)
        })
        .collect()
}
