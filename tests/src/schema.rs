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

/// Checks every line of `text` that begins like a JSON object; other lines may stand between them. Where the text is
/// not `whole`, its last line may be cut off.
///
/// # Errors
/// As for [`check_lines`].
pub fn check_any(text: &str, whole: bool) -> Result<()> {
    // What is written over several lines, as `joinprobe schema` is, is no line of results.
    let mut lines = text
        .split_inclusive('\n')
        .filter(|line| line.starts_with("{\""))
        // etcd's log, out of a command that joinprobe runs.
        .filter(|line| !line.starts_with("{\"level\":"))
        .filter(|line| whole || line.ends_with('\n'));
    lines.try_for_each(|line| check_lines(line).map(|_| ()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &str = "{\"schema\":\"joinprobe/v1\",\"kind\":\"event\"}";

    #[test]
    fn lines_among_others_are_checked() {
        assert!(check_any("joinprobe: attached\n{\n  \"type\": 1\n}\n", true).is_ok());
        for bad in ["{\"kind\":\"verdict\"}", EVENT, "{\"schema\":"] {
            let text = format!("joinprobe: attached\n{bad}\n");
            assert!(check_any(&text, true).is_err(), "{bad}");
        }
        assert!(check_any("{\"level\":\"warn\"}\n", true).is_ok());
        assert!(check_any("{\"schema\":", false).is_ok());
        assert!(check_any("{\"schema\":", true).is_err());
        assert!(check_any("{\"schema\":\n", false).is_err());
    }
}
