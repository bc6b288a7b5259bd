//! `kind: "event"`: something that happened to one connection.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::SystemTime;

use probe_common::event::{Event, EventKind};
use serde::Serialize;

use super::{Kind, Schema, Timestamp};
use crate::target::{ProcessName, Role, RoleName, Side};

/// The process that opened a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Its name, as the kernel cuts it (15 bytes).
    pub name: String,
    /// Its id; `None` for all processes of that name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

impl From<ProcessName> for Process {
    fn from(name: ProcessName) -> Self {
        Self {
            name: name.to_string(),
            pid: None,
        }
    }
}

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventReport {
    /// Always [`Schema::V1`].
    pub schema: Schema,
    /// Always [`Kind::Event`].
    pub kind: Kind,
    /// When it happened.
    pub time: Timestamp,
    /// This node's name.
    pub node: String,
    /// The phase of the watched command at that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// `opened`, `failed` or `closed`.
    pub event: &'static str,
    /// How the connection, or the attempt, ended; `established` while it lives.
    pub outcome: &'static str,
    /// The port's role.
    pub role: &'static str,
    /// The remote address; on the server side the local port's role says what was reached.
    pub target: String,
    /// `client` or `server`.
    pub side: &'static str,
    /// Whether the connection was there before the observer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
    /// Opened, failed: since `connect()`. Closed: how long the connection lived, or where it was adopted how long it was
    /// observed. Microseconds.
    pub waited_us: u64,
    /// SYNs sent again.
    pub syn_retransmits: u32,
    /// Who opened it, where the kernel tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// Events left out before this one by the rate limit.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl EventReport {
    /// The written form of a kernel record that happened at `time`; `None` if it holds no known kind, role or side.
    #[must_use]
    pub fn new(node: &str, time: SystemTime, phase: Option<&str>, event: &Event) -> Option<Self> {
        let kind = [
            EventKind::Opened,
            EventKind::Failed,
            EventKind::Closed,
            EventKind::AdoptedClosed,
        ]
        .into_iter()
        .find(|&kind| kind as u8 == event.kind)?;
        let role = Role::ALL
            .into_iter()
            .find(|&role| role as u8 == event.role)?;
        let side = [Side::Client, Side::Server]
            .into_iter()
            .find(|&side| side as u8 == event.side)?;
        let address = IpAddr::V6(Ipv6Addr::from(event.remote)).to_canonical();
        Some(Self {
            schema: Schema::V1,
            kind: Kind::Event,
            time: Timestamp(time),
            node: node.to_owned(),
            phase: phase.map(str::to_owned),
            event: match kind {
                EventKind::Opened => "opened",
                EventKind::Failed => "failed",
                EventKind::Closed | EventKind::AdoptedClosed => "closed",
            },
            outcome: outcome_name(event.outcome),
            role: role.name(),
            target: SocketAddr::new(address, event.remote_port).to_string(),
            side: match side {
                Side::Client => "client",
                Side::Server => "server",
            },
            adopted: kind == EventKind::AdoptedClosed,
            waited_us: event.waited_us,
            syn_retransmits: event.syn_retransmits,
            process: (event.pid != 0).then(|| Process {
                name: ProcessName::new(event.comm)
                    .map_or_else(String::new, |name| name.to_string()),
                pid: Some(event.pid),
            }),
            left_out: 0,
        })
    }
}

/// An outcome's name in every output.
fn outcome_name(outcome: u8) -> &'static str {
    use probe_common::cells::Counter;
    match u32::from(outcome) {
        x if x == Counter::Established as u32 => "established",
        x if x == Counter::Refused as u32 => "refused",
        x if x == Counter::TimedOut as u32 => "timed_out",
        x if x == Counter::Unreachable as u32 => "unreachable",
        x if x == Counter::Abandoned as u32 => "abandoned",
        x if x == Counter::Reset as u32 => "reset",
        x if x == Counter::Closed as u32 => "closed",
        _ => "failed_unknown",
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use probe_common::cells::Counter;

    use super::*;

    fn record() -> Event {
        let mut comm = [0; 16];
        comm[..7].copy_from_slice(b"kubeadm");
        Event {
            time_ns: 0,
            waited_us: 3_002_411,
            netns: 0,
            remote: Ipv4Addr::new(10, 1, 0, 2).to_ipv6_mapped().octets(),
            comm,
            pid: 4711,
            syn_retransmits: 2,
            remote_port: 2379,
            local_port: 40_000,
            kind: EventKind::Failed as u8,
            role: Role::EtcdClient as u8,
            side: Side::Client as u8,
            outcome: u8::try_from(Counter::Abandoned as u32).unwrap(),
        }
    }

    #[test]
    fn a_failed_connect_is_written_as_in_the_schema() {
        let event = EventReport::new("cp-4", SystemTime::UNIX_EPOCH, None, &record()).unwrap();
        assert_eq!(
            serde_json::to_value(event).unwrap(),
            serde_json::json!({
                "schema": "joinprobe/v1", "kind": "event", "time": "1970-01-01T00:00:00.000Z",
                "node": "cp-4", "event": "failed", "outcome": "abandoned",
                "role": "etcd-client", "target": "10.1.0.2:2379", "side": "client",
                "waited_us": 3_002_411, "syn_retransmits": 2,
                "process": {"name": "kubeadm", "pid": 4711}
            })
        );
    }

    #[test]
    fn the_end_of_a_connection_from_before_is_labelled() {
        let written = |kind: EventKind| {
            let event = Event {
                kind: kind as u8,
                ..record()
            };
            let report = EventReport::new("", SystemTime::UNIX_EPOCH, None, &event).unwrap();
            serde_json::to_value(report).unwrap()
        };
        let adopted = written(EventKind::AdoptedClosed);
        assert_eq!(
            (&adopted["event"], &adopted["adopted"]),
            (&"closed".into(), &true.into())
        );
        assert!(written(EventKind::Closed)["adopted"].is_null());
    }

    #[test]
    fn a_record_nobody_knows_is_refused() {
        for broken in [
            Event {
                kind: 9,
                ..record()
            },
            Event {
                role: 0,
                ..record()
            },
            Event {
                side: 7,
                ..record()
            },
        ] {
            assert!(EventReport::new("", SystemTime::UNIX_EPOCH, None, &broken).is_none());
        }
    }
}
