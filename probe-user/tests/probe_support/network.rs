//! A network namespace of a test's own, and what the kernel counted in it.

use std::process::Command;

const MARK: &str = "JOINPROBE_TEST_NETWORK";

/// Runs the calling test again in a fresh network namespace with loopback up. `true` in there, `false` outside, where
/// the test is then over.
pub fn own_network(test: &str) -> bool {
    if std::env::var_os(MARK).is_some() {
        let up = Command::new("ip")
            .args(["link", "set", "lo", "up"])
            .status();
        assert!(up.unwrap().success(), "loopback does not come up");
        return true;
    }
    if !rustix::process::geteuid().is_root() {
        let reason = "a network namespace needs root";
        assert!(std::env::var_os("CI").is_none(), "{reason}");
        println!("skipped: {reason}");
        return false;
    }
    let status = Command::new("unshare")
        .args(["--net", "--"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(MARK, "1")
        .status()
        .unwrap();
    assert!(status.success(), "{test} failed in its own network");
    false
}

/// What the namespace's TCP counted (RFC 4022 names, /proc/net/snmp).
#[derive(Clone, Copy, Debug)]
pub struct TcpCounts {
    /// Connections opened by `connect()`: SYNs, retransmissions aside.
    pub active_opens: u64,
    /// RSTs sent, by either end.
    pub resets_sent: u64,
    /// Segments sent again, SYNs included.
    pub retransmitted: u64,
}

impl TcpCounts {
    pub fn now() -> Self {
        let text = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
        let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
        let value = |name| {
            let mut pairs = names.split(' ').zip(values.split(' '));
            pairs
                .find(|(key, _)| *key == name)
                .unwrap()
                .1
                .parse()
                .unwrap()
        };
        Self {
            active_opens: value("ActiveOpens"),
            resets_sent: value("OutRsts"),
            retransmitted: value("RetransSegs"),
        }
    }
}
