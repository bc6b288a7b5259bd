//! `joinprobe schema`.

use anyhow::Result;
use joinprobe_lab::schema;
use serde_json::{Value, json};

use crate::errors::joinprobe;

#[test]
fn the_schema_is_printed_as_it_is_published() -> Result<()> {
    let output = joinprobe("schema")?;
    assert!(output.status.success(), "{output:?}");
    let printed: Value = serde_json::from_slice(&output.stdout)?;
    let published = include_str!("../../../docs/schema/joinprobe-v1.json");
    assert_eq!(printed, serde_json::from_str::<Value>(published)?);
    Ok(())
}

fn event() -> Value {
    json!({
        "schema": "joinprobe/v1", "kind": "event", "time": "2026-12-01T20:00:00.000Z", "node": "cp-4",
        "event": "failed", "outcome": "refused", "role": "etcd-client", "target": "10.1.0.2:2379",
        "side": "client", "waited_us": 10_311, "syn_retransmits": 0
    })
}

#[test]
fn fields_may_be_added_but_not_left_out_or_renamed() -> Result<()> {
    schema::check(&event())?;
    let mut later = event();
    later["new_in_a_later_version"] = json!({"a": 1});
    schema::check(&later)?;
    for (field, value) in [
        ("schema", json!("joinprobe/v2")),
        ("kind", json!("other")),
        ("time", json!("yesterday")),
        ("outcome", json!("gone")),
        ("waited_us", json!(0.5)),
        ("waited_us", Value::Null),
    ] {
        let mut wrong = event();
        wrong[field] = value;
        assert!(schema::check(&wrong).is_err(), "{field}");
    }
    let mut lacking = event();
    lacking.as_object_mut().map(|fields| fields.remove("role"));
    let error = schema::check(&lacking).unwrap_err().to_string();
    assert!(error.contains("role"), "{error}");
    Ok(())
}

/// Nothing in it forbids fields that are added later.
#[test]
fn the_schema_is_open() {
    let published = include_str!("../../../docs/schema/joinprobe-v1.json");
    assert!(!published.contains("\"additionalProperties\": false"));
    assert!(!published.contains("unevaluatedProperties"));
}
