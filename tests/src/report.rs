//! Reading joinprobe's JSON as a script would, by its documented names.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use serde_json::Value;

/// A `verdict` object of schema `joinprobe/v1`.
#[derive(Debug, Clone, PartialEq)]
pub struct Report(pub Value);

/// One target of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target<'a>(pub &'a Value);

impl Report {
    /// `pass`, `warn`, …
    #[must_use]
    pub fn verdict(&self) -> &str {
        self.0["verdict"].as_str().unwrap_or_default()
    }

    /// All targets.
    #[must_use]
    pub fn targets(&self) -> Vec<Target<'_>> {
        self.0["targets"]
            .as_array()
            .into_iter()
            .flatten()
            .map(Target)
            .collect()
    }

    /// The target with this address, as it is written in the report.
    ///
    /// # Errors
    /// When there is none.
    pub fn target(&self, address: SocketAddr) -> Result<Target<'_>> {
        let address = address.to_string();
        let mut targets = self.targets().into_iter();
        targets
            .find(|target| target.text("/target") == address)
            .with_context(|| format!("{address} is not in the report: {}", self.0))
    }

    /// A whole number at a path such as `/observer/rss_bytes`.
    ///
    /// # Errors
    /// When it is not there.
    pub fn number(&self, pointer: &str) -> Result<u64> {
        number(&self.0, pointer)
    }

    /// A text at a path; empty when it is not there.
    #[must_use]
    pub fn text(&self, pointer: &str) -> &str {
        text(&self.0, pointer)
    }

    /// Every finding that is in this state, of the run and of its targets.
    #[must_use]
    pub fn findings(&self, state: &str) -> Vec<&Value> {
        let of_targets = self
            .targets()
            .into_iter()
            .flat_map(|target| target.findings(state));
        in_state(&self.0, state).chain(of_targets).collect()
    }
}

impl<'a> Target<'a> {
    /// `pass`, `warn`, …
    #[must_use]
    pub fn verdict(&self) -> &'a str {
        self.text("/verdict")
    }

    /// A whole number at a path such as `/handshake/p50_us`.
    ///
    /// # Errors
    /// When it is not there.
    pub fn number(&self, pointer: &str) -> Result<u64> {
        number(self.0, pointer)
    }

    /// A text at a path; empty when it is not there.
    #[must_use]
    pub fn text(&self, pointer: &str) -> &'a str {
        text(self.0, pointer)
    }

    /// Its findings in this state.
    #[must_use]
    pub fn findings(&self, state: &str) -> Vec<&'a Value> {
        in_state(self.0, state).collect()
    }
}

fn number(value: &Value, pointer: &str) -> Result<u64> {
    value
        .pointer(pointer)
        .and_then(Value::as_u64)
        .with_context(|| format!("no number at {pointer} of {value}"))
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn in_state<'a>(value: &'a Value, state: &str) -> impl Iterator<Item = &'a Value> {
    value["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(move |finding| finding["state"] == state)
}
