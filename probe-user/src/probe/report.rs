//! What a probe brings back.

use std::time::Duration;

use crate::bpf::TcpSegments;
use crate::tls::CertificateFacts;

/// A part of a probe, in the order they happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Name resolution.
    Dns,
    /// `connect()` to ESTABLISHED.
    Tcp,
    /// ClientHello to the end of the TLS handshake, pacing included.
    Tls,
    /// Request to answer.
    Request,
}

/// How long each stage took; `None` for a stage that was not reached or not needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// Name resolution; `None` for an address literal.
    pub dns: Option<Duration>,
    /// `connect()` to ESTABLISHED.
    pub tcp: Option<Duration>,
    /// The TLS handshake, from the last chunk of the ClientHello (pacing is not the server's time).
    pub tls: Option<Duration>,
    /// The one request: etcd Range or GET /readyz.
    pub request: Option<Duration>,
}

/// How far the server could be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsState {
    /// TLS was not reached.
    NotReached,
    /// The chain and the name were verified against a CA that was given.
    Verified,
    /// No CA is known; nothing secret was sent.
    Unverified,
}

/// What became of the client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientCertificate {
    /// None was given; what a joining node usually has.
    NotGiven,
    /// One was given and kept back, because no CA was given to verify the server with first.
    Withheld,
    /// One was given and the server raised no objection.
    Accepted,
    /// The server refused it; the text is the TLS alert's.
    Rejected(String),
    /// The server did not get as far as asking.
    NotReached,
}

/// Why a probe could not do all it set out to do. The text is one sentence with input, reason and remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeFailure {
    /// The stage that failed.
    pub stage: Stage,
    /// A word for the `probe.result` field: `unresolved`, `local_error`, `refused`, `timed_out`, `unreachable`,
    /// `reset`, `no_tls`, `untrusted`, `name_mismatch`, `not_valid_now`, `no_http2`, `tls_failed`, `request_failed`,
    /// `unauthenticated`, `no_backend`, `unhealthy`, `too_short`.
    pub result: &'static str,
    /// The sentence.
    pub text: String,
}

/// The answer to the one etcd read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdAnswer {
    /// The store's revision; `None` when the read was answered by `permission denied`, which is healthy too.
    pub revision: Option<i64>,
    /// The answering member's id.
    pub member_id: Option<u64>,
    /// `ok`, `permission denied`, or `learner` for a member that has not been promoted yet and answers no reads.
    pub result: &'static str,
}

/// What a probe of one target found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeReport {
    /// Stage times.
    pub stages: Stages,
    /// How far the server could be trusted.
    pub tls: TlsState,
    /// `1.2` or `1.3`, where a handshake was completed.
    pub tls_version: Option<&'static str>,
    /// What the server's certificate says, trusted or not.
    pub server_certificate: Option<CertificateFacts>,
    /// What became of the client certificate.
    pub client_certificate: ClientCertificate,
    /// Path samples in the order they were taken, microseconds.
    pub path_sequence: Vec<u32>,
    /// Chunks the ClientHello was sent in.
    pub chunks: u32,
    /// Connections made, retries included.
    pub attempts: u32,
    /// Segment sizes and losses when the conversation ended; `None` where there was none.
    pub segments: Option<TcpSegments>,
    /// The etcd read's answer, where this probe was the one to send it.
    pub etcd: Option<EtcdAnswer>,
    /// The API server's HTTP status for GET /readyz.
    pub http_status: Option<u16>,
    /// Why the probe ended early; `None` when it did all it could with the credentials it had.
    pub failure: Option<ProbeFailure>,
}

impl ProbeReport {
    /// The report of a probe that has not reached anything yet.
    #[must_use]
    pub fn new(dns: Option<Duration>) -> Self {
        Self {
            stages: Stages {
                dns,
                ..Stages::default()
            },
            tls: TlsState::NotReached,
            tls_version: None,
            server_certificate: None,
            client_certificate: ClientCertificate::NotReached,
            path_sequence: Vec::new(),
            chunks: 0,
            attempts: 1,
            segments: None,
            etcd: None,
            http_status: None,
            failure: None,
        }
    }

    /// The report of a probe that ended before it began.
    #[must_use]
    pub fn failed(dns: Option<Duration>, failure: ProbeFailure) -> Self {
        Self {
            failure: Some(failure),
            ..Self::new(dns)
        }
    }
}
