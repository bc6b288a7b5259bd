//! How long the name took.

use crate::measure::{TargetMeasurement, micros};
use crate::verdict::{Finding, FindingState, Unit, WarnFail, text};

const ID: &str = "dns-time";
/// Half of what kubeadm gives an etcd dial, the name included, microseconds.
const WARN_US: u64 = 1_000_000;

/// Id: `dns-time`; nothing for a target that is an address, or whose name does not resolve.
pub(super) fn findings(measured: &TargetMeasurement) -> Option<Finding> {
    let took = micros(measured.probe.as_ref()?.stages.dns?);
    let host = &measured.target.spec.host;
    let (state, relation, hint) = if took > WARN_US {
        (
            FindingState::Warn,
            "above",
            "A name server in /etc/resolv.conf does not answer or is slow, and each further dial waits for it too: ask \
             them one by one (`dig @SERVER NAME`), remove the dead one, or use addresses.",
        )
    } else {
        (FindingState::Pass, "within", "")
    };
    let text = format!(
        "resolving `{host}` took {}, {relation} the limit of {}",
        text::ms(took),
        text::ms(WARN_US)
    );
    Some(Finding {
        n: 1,
        value: Some(took),
        limit: Some(WARN_US),
        limits: WarnFail::warn(WARN_US),
        unit: Unit::Micros,
        source: "half of the 2 s that kubeadm gives each etcd dial, its name included".to_owned(),
        hint: hint.to_owned(),
        ..Finding::plain(ID, state, text)
    })
}
