//! Fenced blocks of a page.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::repository;

/// The blocks of a language on a page below the repository, in order.
pub(crate) fn blocks(page: &str, language: &str) -> Result<Vec<String>> {
    let path = repository().join(page);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {page}"))?;
    let mut blocks = Vec::new();
    let mut open: Option<(bool, String)> = None;
    for line in text.lines() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(named), None) => open = Some((named == language, String::new())),
            (Some(_), Some((wanted, block))) => blocks.extend(wanted.then_some(block)),
            (None, Some((wanted, block))) => open = Some((wanted, block + line + "\n")),
            (None, None) => {}
        }
    }
    ensure!(open.is_none(), "a block of {page} is not closed");
    Ok(blocks)
}

/// The YAML objects of a page.
pub(crate) fn objects(page: &str) -> Result<Vec<Value>> {
    let parse = |block: String| {
        serde_saphyr::from_str(&block).with_context(|| format!("{page} has no YAML:\n{block}"))
    };
    blocks(page, "yaml")?.into_iter().map(parse).collect()
}

/// The first object of a kind on a page.
pub(crate) fn object(page: &str, kind: &str) -> Result<Value> {
    let all = objects(page)?;
    let found = all.into_iter().find(|object| object["kind"] == kind);
    found.with_context(|| format!("{page} has no {kind}"))
}

/// The strings of a list.
pub(crate) fn strings(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}
