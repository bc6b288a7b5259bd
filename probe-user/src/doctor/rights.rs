//! What this process may do.

use super::Check;
use crate::bpf::host;

/// Capabilities: name, what it is for, and whether nothing works without.
const USES: [(&str, &str, bool); 5] = [
    ("CAP_BPF", "loading programs and making maps", true),
    (
        "CAP_NET_ADMIN",
        "programs that see connections, and attaching them",
        true,
    ),
    (
        "CAP_PERFMON",
        "causes of failed connections, names of processes, connections that exist already, and RTT samples below Linux \
         6.10",
        false,
    ),
    (
        "CAP_SYS_ADMIN",
        "mounting the cgroup v2 hierarchy where it is not, entering other network namespaces, names of other programs \
         on the hook",
        false,
    ),
    (
        "CAP_SYS_RESOURCE",
        "lifting the limit of locked memory below Linux 5.11",
        false,
    ),
];

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![user_namespace(host::in_user_namespace())];
    let held: Vec<&str> = host::capabilities()
        .into_iter()
        .filter_map(|(capability, there)| there.then_some(capability.name))
        .collect();
    checks.extend(USES.map(|(name, purpose, needed)| capability(&held, name, purpose, needed)));
    checks
}

fn user_namespace(inside: bool) -> Check {
    const ID: &str = "user-namespace";
    if inside {
        Check::fail(
            ID,
            "this process is inside a user namespace, where the kernel grants no eBPF whatever the capabilities",
            "run joinprobe on the host, outside rootless containers",
        )
    } else {
        Check::pass(ID, "this process is in the host's user namespace")
    }
}

fn capability(held: &[&str], name: &'static str, purpose: &str, needed: bool) -> Check {
    const ID: &str = "capability";
    // The kernel takes it in place of the others that it once stood for.
    let stands_in = matches!(name, "CAP_BPF" | "CAP_NET_ADMIN" | "CAP_PERFMON");
    if held.contains(&name) {
        return Check::pass(ID, format!("{name} is there: {purpose}"));
    }
    if stands_in && held.contains(&"CAP_SYS_ADMIN") && name != "CAP_NET_ADMIN" {
        return Check::pass(
            ID,
            format!("{name} is missing, CAP_SYS_ADMIN stands in for it: {purpose}"),
        );
    }
    let text = format!("{name} is missing: {purpose}");
    let remedy = format!(
        "run joinprobe as root, or give it {name} (AmbientCapabilities= in a systemd unit, setcap, capabilities.add in a pod)"
    );
    if needed {
        Check::fail(ID, text, &remedy)
    } else if name == "CAP_PERFMON" {
        Check::warn(ID, text, &remedy)
    } else {
        Check::note(ID, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::CheckState::{Fail, Note, Pass, Warn};

    #[test]
    fn each_capability_is_judged_by_what_it_is_for() {
        let judge = |held: &[&str]| {
            USES.map(|(name, purpose, needed)| capability(held, name, purpose, needed).state)
        };
        assert_eq!(judge(&[]), [Fail, Fail, Warn, Note, Note]);
        assert_eq!(
            judge(&["CAP_BPF", "CAP_NET_ADMIN"]),
            [Pass, Pass, Warn, Note, Note]
        );
        assert_eq!(
            judge(&["CAP_SYS_ADMIN", "CAP_NET_ADMIN"]),
            [Pass, Pass, Pass, Pass, Note]
        );
    }
}
