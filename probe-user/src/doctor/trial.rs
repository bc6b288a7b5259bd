//! The proof: joinprobe's programs are loaded and attached, and let go again.

use std::path::Path;

use super::Check;
use crate::bpf::{Observer, ObserverConfig, RttSource};

/// Attaches as `joinprobe watch` does, with everything that can be lost, and detaches.
pub(super) fn checks(cgroup: Option<&Path>) -> Vec<Check> {
    let config = ObserverConfig {
        events: true,
        max_targets: 1,
        cgroup: cgroup.map(Path::to_owned),
        ..ObserverConfig::default()
    };
    let observer = match Observer::attach(&config) {
        Ok(observer) => observer,
        Err(error) => {
            return vec![Check::fail(
                "attach",
                error.to_string(),
                "the lines below say what is missing",
            )];
        }
    };
    let place = observer.hierarchy().path().display();
    let text = format!("joinprobe's programs load and attach at {place}");
    let mut checks = vec![Check::pass("attach", text), source(observer.rtt_source())];
    let limitations = observer.limitations();
    checks.extend(limitations.iter().map(|limitation| {
        Check::warn(
            "limitation",
            limitation.clone(),
            "a line below, or docs/kernel-support.md, says what gives it back",
        )
    }));
    if limitations.is_empty() {
        checks.push(Check::pass(
            "limitation",
            "nothing is lost: causes of failed connections, names of processes, connections that exist already, own \
             namespace",
        ));
    }
    checks
}

fn source(source: Option<RttSource>) -> Check {
    const ID: &str = "rtt-source";
    match source {
        Some(RttSource::Raw) => Check::pass(ID, "RTT samples are the kernel's own (raw)"),
        Some(RttSource::Reconstructed) => Check::pass(
            ID,
            "RTT samples are reconstructed exactly, on the tracepoint tcp_probe",
        ),
        Some(RttSource::Smoothed) => Check::warn(
            ID,
            "RTT samples are smoothed by the kernel: single slow round trips show less",
            "use Linux 6.10 or newer, or give BTF and CAP_PERFMON",
        ),
        None => Check::note(ID, "what RTT samples there are shows with the first one"),
    }
}
