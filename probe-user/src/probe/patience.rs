//! How long silence must last before it says anything about a server.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::Instant;

use super::report::ProbeFailure;
use super::text;

/// TCP's first retransmission timeout (RFC 6298, section 2.1): whoever stops listening sooner cannot tell a server that
/// is not there from one lost SYN.
pub const MIN_PATIENCE: Duration = Duration::from_secs(1);

/// `ProbeFailure::result` of what ended for want of time.
pub const TOO_SHORT: &str = "too_short";

/// The failure as it stands; or, where it is only that `until` came, and that within less than [`MIN_PATIENCE`] of
/// `begun`, one that says so.
pub(crate) fn unless_hasty(
    failure: ProbeFailure,
    subject: impl Display,
    begun: Instant,
    until: Instant,
) -> ProbeFailure {
    let given = until.saturating_duration_since(begun);
    let ran_out = failure.result == "timed_out" || Instant::now() >= until;
    if !ran_out || given >= MIN_PATIENCE {
        return failure;
    }
    ProbeFailure {
        stage: failure.stage,
        result: TOO_SHORT,
        text: format!(
            "{subject} was given only {} to answer: too short to tell a server that is down from a slow or lost answer \
             (a lost SYN is sent again after 1 s); give a longer --timeout",
            text::span(given)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Stage;

    fn failure(result: &'static str) -> ProbeFailure {
        ProbeFailure {
            stage: Stage::Tcp,
            result,
            text: "as it was".to_owned(),
        }
    }

    #[test]
    fn a_short_silence_proves_nothing() {
        let now = Instant::now();
        let judged = |result, given_ms| {
            unless_hasty(
                failure(result),
                "a:1",
                now,
                now + Duration::from_millis(given_ms),
            )
        };
        let hasty = judged("timed_out", 90);
        assert_eq!(hasty.result, TOO_SHORT);
        assert!(
            hasty.text.contains("only 90 ms") && hasty.text.contains("--timeout"),
            "{}",
            hasty.text
        );
        assert_eq!(judged("timed_out", 1000).result, "timed_out");
        // What a server said in time is an answer, however little time there was.
        assert_eq!(judged("refused", 60_000).result, "refused");
        assert_eq!(judged("request_failed", 0).result, TOO_SHORT);
    }
}
