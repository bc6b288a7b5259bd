//! A target as it is written.

use serde::Serialize;

use super::event::is_zero;
use super::{DistributionReport, FindingReport, Process, SampledReport, TraceReport};
use crate::bpf::TcpSegments;
use crate::measure::{Counters, TargetMeasurement, micros};
use crate::probe::{ClientCertificate, ProbeReport, TlsState};
use crate::target::{RoleName, Side};
use crate::verdict::{TargetVerdict, Verdict};

/// Connections by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(
    missing_docs,
    reason = "the names are the outcomes of docs/measurements.md"
)]
pub struct Connections {
    pub established: u64,
    pub refused: u64,
    pub timed_out: u64,
    pub unreachable: u64,
    pub abandoned: u64,
    pub reset: u64,
    pub failed_unknown: u64,
}

impl Connections {
    /// Every outcome with its name.
    #[must_use]
    pub fn by_outcome(self) -> [(&'static str, u64); 7] {
        [
            ("established", self.established),
            ("refused", self.refused),
            ("timed_out", self.timed_out),
            ("unreachable", self.unreachable),
            ("abandoned", self.abandoned),
            ("reset", self.reset),
            ("failed_unknown", self.failed_unknown),
        ]
    }
}

impl std::iter::Sum for Connections {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |sum, one| Self {
            established: sum.established + one.established,
            refused: sum.refused + one.refused,
            timed_out: sum.timed_out + one.timed_out,
            unreachable: sum.unreachable + one.unreachable,
            abandoned: sum.abandoned + one.abandoned,
            reset: sum.reset + one.reset,
            failed_unknown: sum.failed_unknown + one.failed_unknown,
        })
    }
}

impl From<&Counters> for Connections {
    fn from(counters: &Counters) -> Self {
        let &Counters {
            established,
            refused,
            timed_out,
            unreachable,
            abandoned,
            reset,
            failed_unknown,
            ..
        } = counters;
        Self {
            established,
            refused,
            timed_out,
            unreachable,
            abandoned,
            reset,
            failed_unknown,
        }
    }
}

/// Our own connection's stages, microseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(
    missing_docs,
    reason = "the names are the stages of docs/measurements.md, with their unit"
)]
pub struct ProbeStages {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_us: Option<u64>,
    /// `ok`, or what went wrong.
    pub result: String,
    /// `verified`, `unverified` or `not reached`.
    pub tls: &'static str,
    /// `not given`, `accepted`, `rejected` or `not reached`.
    pub client_certificate: &'static str,
    /// Chunks the ClientHello was sent in.
    pub chunks: u32,
    /// Connections made, retries included.
    pub attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// Segment sizes of the connection.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub segments: Option<SegmentSizes>,
}

/// Segment sizes of our own connection, bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SegmentSizes {
    /// Path MTU as this host knows it, IP header included.
    pub path_mtu_bytes: u32,
    /// Most payload of a segment sent.
    pub mss_bytes: u32,
    /// Most payload by this host's own interface.
    pub own_mss_bytes: u32,
}

impl From<&TcpSegments> for SegmentSizes {
    fn from(segments: &TcpSegments) -> Self {
        Self {
            path_mtu_bytes: segments.path_mtu,
            mss_bytes: segments.mss,
            own_mss_bytes: segments.own_mss,
        }
    }
}

impl ProbeStages {
    fn new(probe: &ProbeReport) -> Self {
        let result = match (&probe.failure, &probe.etcd) {
            (Some(failure), _) => failure.result,
            (None, Some(answer)) => answer.result,
            (None, None) => "ok",
        };
        Self {
            dns_us: probe.stages.dns.map(micros),
            tcp_us: probe.stages.tcp.map(micros),
            tls_us: probe.stages.tls.map(micros),
            request_us: probe.stages.request.map(micros),
            result: result.to_owned(),
            tls: match probe.tls {
                TlsState::NotReached => "not reached",
                TlsState::Verified => "verified",
                TlsState::Unverified => "unverified",
            },
            client_certificate: match probe.client_certificate {
                ClientCertificate::NotGiven => "not given",
                ClientCertificate::Withheld => "withheld",
                ClientCertificate::Accepted => "accepted",
                ClientCertificate::Rejected(_) => "rejected",
                ClientCertificate::NotReached => "not reached",
            },
            chunks: probe.chunks,
            attempts: probe.attempts,
            http_status: probe.http_status,
            segments: probe.segments.as_ref().map(SegmentSizes::from),
        }
    }
}

/// The one etcd read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EtcdProbeReport {
    /// The member that was asked.
    pub target: String,
    /// `ok` or `permission denied`.
    pub result: String,
    /// Request to answer, microseconds.
    pub request_us: u64,
    /// The same without the median path RTT, microseconds: quorum and disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_us: Option<u64>,
    /// The store's revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// The answering member's id, hexadecimal as etcd writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member_id: Option<String>,
}

impl EtcdProbeReport {
    /// The read of `measurement`'s probe, if it was the one to send it.
    #[must_use]
    pub fn of(measurement: &TargetMeasurement) -> Option<Self> {
        let probe = measurement.probe.as_ref()?;
        let answer = probe.etcd.as_ref()?;
        let request_us = micros(probe.stages.request?);
        let path = &measurement.distributions.path;
        Some(Self {
            target: measurement.target.to_string(),
            result: answer.result.to_owned(),
            request_us,
            server_us: (!path.is_empty())
                .then(|| request_us.saturating_sub(path.value_at_quantile(0.5))),
            revision: answer.revision,
            member_id: answer.member_id.map(|id| format!("{id:x}")),
        })
    }
}

/// What was measured at one target, in the JSON shape.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(
    missing_docs,
    reason = "the names are the measures of docs/measurements.md"
)]
pub struct MeasuredReport {
    pub role: &'static str,
    /// The address dialled.
    pub target: String,
    /// The host as it was written, where it is a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// `client` or `server`.
    pub side: &'static str,
    /// Whose connections these are, where processes are told apart and this one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    pub handshake: DistributionReport,
    pub path: DistributionReport,
    pub connect: DistributionReport,
    pub segment: DistributionReport,
    /// The smallest segment RTT of each connection within one interval.
    pub segment_min: DistributionReport,
    pub connections: Connections,
    pub syn_retransmits: u64,
    pub retransmits: u64,
    pub segments_out: u64,
    /// RTT samples left out of every distribution: those of acknowledged retransmissions.
    #[serde(skip_serializing_if = "is_zero")]
    pub retransmitted_samples: u64,
    /// RTT samples that could not be reconstructed.
    #[serde(skip_serializing_if = "is_zero")]
    pub dropped_samples: u64,
    /// Connections that were there before the observer and are observed since; they are in none of `connections`, except
    /// `reset`.
    #[serde(skip_serializing_if = "is_zero")]
    pub adopted: u64,
    /// Connections that were there before the observer and are only sampled; they are in no other field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Box<SampledReport>>,
    /// Connections counted here because no slot of their own was left.
    pub overflowed: u64,
}

impl MeasuredReport {
    /// The written form of a measurement; its distributions move, they are not copied.
    #[must_use]
    pub fn new(measurement: TargetMeasurement, rtt_source: &str) -> Self {
        let TargetMeasurement {
            target,
            side,
            opener,
            distributions,
            counters,
            sampled,
            probe: _,
        } = measurement;
        let named = target.spec.host.parse::<std::net::IpAddr>().is_err();
        Self {
            role: target.spec.role.name(),
            target: target.to_string(),
            host: named.then_some(target.spec.host),
            side: match side {
                Side::Client => "client",
                Side::Server => "server",
            },
            process: opener.process.map(Process::from),
            handshake: DistributionReport::new(distributions.handshake),
            path: DistributionReport::new(distributions.path),
            connect: DistributionReport::new(distributions.connect),
            segment: DistributionReport::with_source(distributions.segment, rtt_source),
            segment_min: DistributionReport::with_source(distributions.segment_min, rtt_source),
            connections: Connections::from(&counters),
            syn_retransmits: counters.syn_retransmits,
            retransmits: counters.retransmits,
            segments_out: counters.segments_out,
            retransmitted_samples: counters.retransmitted_samples,
            dropped_samples: counters.dropped_samples,
            adopted: counters.adopted,
            sampled: sampled.map(|sampled| Box::new((*sampled).into())),
            overflowed: counters.overflowed,
        }
    }

    /// The name of the process whose connections these are.
    #[must_use]
    pub fn process_name(&self) -> Option<&str> {
        self.process.as_ref().map(|process| process.name.as_str())
    }

    /// Every measure with its name, in the order of docs/measurements.md.
    pub fn measures(&self) -> impl Iterator<Item = (&'static str, &DistributionReport)> {
        [
            ("handshake", &self.handshake),
            ("path", &self.path),
            ("connect", &self.connect),
            ("segment", &self.segment),
            ("segment_min", &self.segment_min),
        ]
        .into_iter()
    }
}

/// One target and its verdict, in the JSON shape.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TargetReport {
    /// What was measured.
    #[serde(flatten)]
    pub measured: MeasuredReport,
    /// Where the target was found: a flag, a variable, a file with its field, or an object of the cluster.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub found_in: Vec<String>,
    /// `pass`, `warn`, `inconclusive` or `fail`.
    pub verdict: &'static str,
    /// What our own connection found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeStages>,
    /// One per check; where a target has a row for each process, the first one has those of all.
    pub findings: Vec<FindingReport>,
    /// The way to it, where it was traced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceReport>,
    /// For the formats that draw it.
    #[serde(skip)]
    pub worst: Verdict,
}

impl TargetReport {
    /// Whether this is one more process of the target in the row before, which has the findings of both.
    #[must_use]
    pub fn is_further_process(&self) -> bool {
        self.measured.process.is_some() && self.findings.is_empty()
    }

    /// The written form of a target and its verdict.
    #[must_use]
    pub fn new(measurement: TargetMeasurement, judged: &TargetVerdict, rtt_source: &str) -> Self {
        Self {
            found_in: Vec::new(),
            verdict: judged.verdict.name(),
            probe: measurement.probe.as_ref().map(ProbeStages::new),
            findings: judged.findings.iter().map(FindingReport::new).collect(),
            trace: None,
            worst: judged.verdict,
            measured: MeasuredReport::new(measurement, rtt_source),
        }
    }
}
