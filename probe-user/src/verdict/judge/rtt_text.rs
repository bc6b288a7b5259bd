//! What a median RTT's finding says.

use probe_common::cells::Measure;

use crate::target::{Role, RoleName};
use crate::verdict::limits::Limit;
use crate::verdict::median::{Median, Samples};
use crate::verdict::{FindingState, text};

pub(super) fn name(measure: Measure) -> &'static str {
    match measure {
        Measure::Path => "path RTT",
        Measure::Handshake => "handshake RTT",
        _ => "smallest segment RTT per connection",
    }
}

pub(super) fn sentence(
    measure: Measure,
    median: &Median,
    samples: Samples<'_>,
    state: FindingState,
    limit: &Limit,
    needs: Option<u64>,
) -> String {
    let bounds = match (
        median.bounds.lower.map(text::ms),
        median.bounds.upper.map(text::ms),
    ) {
        (Some(lower), Some(upper)) if lower == upper => format!(", both bounds {lower}"),
        (Some(lower), Some(upper)) => format!(", bounds {lower} to {upper}"),
        (Some(lower), None) => format!(", at least {lower}"),
        (None, Some(upper)) => format!(", at most {upper}"),
        (None, None) => String::new(),
    };
    let measured = format!(
        "median {} {} (n={}{bounds})",
        name(measure),
        text::ms(median.value),
        median.n
    );
    match state {
        FindingState::Pass => format!("{measured} is within the limit of {limit}"),
        FindingState::Warn => format!("{measured} is above the warn limit of {limit}"),
        FindingState::Fail => format!("{measured} is above the fail limit of {limit}"),
        FindingState::NotDecided | FindingState::Inconclusive | FindingState::Skipped => {
            format!(
                "{measured} against {limit}: not decided ({})",
                why_undecided(median, samples, limit, needs)
            )
        }
    }
}

fn why_undecided(
    median: &Median,
    samples: Samples<'_>,
    limit: &Limit,
    needs: Option<u64>,
) -> String {
    let split = samples.against(limit.value);
    let sides = if let Some(needs) = needs {
        format!("n={}, needs {needs} or more", median.n)
    } else if split.above == 0 || split.above == median.n {
        "too few, although all agree".to_owned()
    } else {
        format!("{} above, {} within", split.above, median.n - split.above)
    };
    if split.worth < median.n {
        format!(
            "{sides}; in runs, so that {} are worth {}",
            median.n, split.worth
        )
    } else {
        sides
    }
}

/// What to do; `probed` tells a preflight, which makes its own samples, from a watch, which waits for them.
pub(super) fn hint(role: Role, state: FindingState, probed: bool) -> &'static str {
    match (state, role.is_etcd()) {
        (FindingState::Fail, true) => {
            "A member this far away misses heartbeats and provokes elections; a join may leave the cluster without a leader. Move the node closer, or raise --heartbeat-interval and --election-timeout on every member first."
        }
        (FindingState::Warn, true) => {
            "Heartbeats arrive, with little room for jitter; expect slow writes and now and then an election. Consider a higher --heartbeat-interval and --election-timeout on every member."
        }
        (FindingState::Fail, false) => {
            "Calls to the API server cannot meet their objective from here, and the join's own waits may run out; use a nearer endpoint or load balancer."
        }
        (FindingState::Warn, false) => {
            "A fresh call needs about four round trips; expect a slow join and slow controllers on this node."
        }
        (FindingState::Inconclusive, _) if !probed => {
            "The samples lie on both sides of the limit, or are too few. Watch with a longer --interval or --duration, so that more are seen; if it stays so, the path is too close to the limit to rely on."
        }
        (FindingState::Inconclusive, _) => {
            "The samples lie on both sides of the limit, or are too few. Run again with a longer --timeout or a higher --max-connections; if it stays so, the path is too close to the limit to rely on."
        }
        _ => "",
    }
}
