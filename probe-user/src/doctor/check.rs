//! One thing that was looked at.

use serde::Serialize;

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// All is there.
    Pass,
    /// joinprobe measures, but something is lost.
    Warn,
    /// joinprobe cannot measure.
    Fail,
    /// It does not matter here; said because it is asked for often.
    Note,
}

/// One thing that was looked at, what was found and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Short name that does not change.
    pub id: &'static str,
    /// How it is.
    pub state: CheckState,
    /// What was found, with the reason: one sentence.
    pub text: String,
    /// What to do; empty where nothing needs doing.
    pub remedy: String,
}

impl Check {
    pub(super) fn pass(id: &'static str, text: impl Into<String>) -> Self {
        Self::new(id, CheckState::Pass, text, "")
    }

    pub(super) fn note(id: &'static str, text: impl Into<String>) -> Self {
        Self::new(id, CheckState::Note, text, "")
    }

    pub(super) fn warn(id: &'static str, text: impl Into<String>, remedy: &str) -> Self {
        Self::new(id, CheckState::Warn, text, remedy)
    }

    pub(super) fn fail(id: &'static str, text: impl Into<String>, remedy: &str) -> Self {
        Self::new(id, CheckState::Fail, text, remedy)
    }

    fn new(id: &'static str, state: CheckState, text: impl Into<String>, remedy: &str) -> Self {
        Self {
            id,
            state,
            text: text.into(),
            remedy: remedy.to_owned(),
        }
    }
}
