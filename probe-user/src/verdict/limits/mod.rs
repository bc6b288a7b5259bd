//! The limits: their values, where each comes from, and how one is overridden.

mod id;
#[cfg(test)]
mod tests;

use std::fmt;

pub use id::LimitId;

use super::Unit;
use super::text;
use super::timing::Timing;

/// One limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Which one.
    pub id: LimitId,
    /// Beyond means greater than this, in the unit of [`LimitId::unit`].
    pub value: u64,
    /// Where the value comes from, in words.
    pub source: String,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::in_unit(self.value, self.id.unit()))
    }
}

/// Every limit of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    timing: Timing,
    limits: [Limit; LimitId::ALL.len()],
}

impl Default for Limits {
    fn default() -> Self {
        Self::from_timing(Timing::default())
    }
}

impl Limits {
    /// The table of docs/verdicts.md, its etcd rows rescaled to the cluster's own timing: RTT warns above half a
    /// heartbeat and fails above a tenth of the election timeout, and a peer's dial has one election timeout and 1 s.
    #[must_use]
    pub fn from_timing(timing: Timing) -> Self {
        let limits = LimitId::ALL.map(|id| {
            let (value, source) = id.default_value();
            Limit {
                id,
                value,
                source: source.to_owned(),
            }
        });
        let mut made = Self { timing, limits };
        let Timing {
            heartbeat,
            election,
            source,
        } = &made.timing;
        let warn = (
            crate::measure::micros(*heartbeat) / 2,
            format!(
                "half of the heartbeat interval of {} ({source})",
                text::ms(crate::measure::micros(*heartbeat))
            ),
        );
        let fail = (
            crate::measure::micros(*election) / 10,
            format!(
                "a tenth of the election timeout of {} ({source})",
                text::ms(crate::measure::micros(*election))
            ),
        );
        let dial = (
            crate::measure::micros(*election).saturating_add(1_000_000),
            format!(
                "etcd gives each dial of a peer 1 s and the election timeout of {} ({source})",
                text::ms(crate::measure::micros(*election))
            ),
        );
        made.set(LimitId::EtcdRttWarn, warn.0, warn.1);
        made.set(LimitId::EtcdRttFail, fail.0, fail.1);
        made.set(LimitId::EtcdPeerConnectFail, dial.0, dial.1);
        made
    }

    /// The timing the etcd limits come from.
    #[must_use]
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// One limit.
    #[must_use]
    pub fn get(&self, id: LimitId) -> &Limit {
        &self.limits[id as usize]
    }

    /// Every limit, in table order.
    pub fn iter(&self) -> impl Iterator<Item = &Limit> {
        self.limits.iter()
    }

    /// Overrides one limit; `value` in the unit of [`LimitId::unit`], `source` in words, for example `--limit flag`.
    pub fn set(&mut self, id: LimitId, value: u64, source: impl Into<String>) {
        self.limits[id as usize] = Limit {
            id,
            value,
            source: source.into(),
        };
    }

    /// Overrides one limit as users write it: `etcd-rtt-fail=80ms`, `retransmit-rate-warn=2%`, `syn-retransmits-warn=1`.
    ///
    /// # Errors
    /// The name is unknown, or the value is not one of the limit's unit.
    pub fn set_written(&mut self, written: &str, source: &str) -> Result<(), LimitError> {
        let refuse = |reason: String| LimitError {
            written: written.to_owned(),
            reason,
        };
        let (name, value) = written
            .split_once('=')
            .ok_or_else(|| refuse("write NAME=VALUE, for example etcd-rtt-fail=80ms".to_owned()))?;
        let id = LimitId::ALL
            .into_iter()
            .find(|id| id.name() == name.trim())
            .ok_or_else(|| {
                let names = LimitId::ALL.map(LimitId::name).join(", ");
                refuse(format!(
                    "there is no limit of that name; choose from {names}"
                ))
            })?;
        let value = text::parse_in_unit(value.trim(), id.unit()).ok_or_else(|| {
            refuse(
                match id.unit() {
                    Unit::Micros => "the value is not a duration; write 500us, 80ms or 2s",
                    Unit::PartsPerMillion => {
                        "the value is not a share from 0 to 100 %; write it as 2%"
                    }
                    Unit::Count => "the value is not a whole number; write 0, 1, 2 …",
                }
                .to_owned(),
            )
        })?;
        if value == 0 && id.unit() == Unit::Micros {
            return Err(refuse(
                "no network answers in no time, so it would refuse every join; write 80ms or 2s"
                    .to_owned(),
            ));
        }
        self.set(id, value, source);
        Ok(())
    }
}

/// A limit that was refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("limit `{written}` cannot be used: {reason}")]
pub struct LimitError {
    written: String,
    reason: String,
}
