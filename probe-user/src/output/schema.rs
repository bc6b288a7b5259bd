//! The JSON Schema of `-o json`.

/// The schema of every JSON line, as `joinprobe schema` prints it.
pub const JSON_SCHEMA: &str = include_str!("../../../docs/schema/joinprobe-v1.json");
