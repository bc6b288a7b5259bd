//! Says why a TLS handshake failed.

mod certificate;

use std::io;
use std::time::Duration;

use rustls::{AlertDescription, Error};

use crate::probe::alert;
use crate::probe::pacing::Interruption;
use crate::probe::report::{ProbeFailure, ProbeReport, Stage};
use crate::probe::text;
use crate::probe::wire::{FIRST_WORDS, Wire};
use crate::target::{Role, RoleName as _, Target};
use crate::tls::ClientTls;

fn failure(result: &'static str, text: String) -> ProbeFailure {
    ProbeFailure {
        stage: Stage::Tls,
        result,
        text,
    }
}

/// TLS record types, RFC 8446 section 5.1: nothing else opens a TLS conversation.
fn is_tls(heard: &[u8]) -> bool {
    heard
        .first()
        .is_none_or(|byte| (0x14..=0x18).contains(byte))
}

/// An error that has no cause a user could know.
pub(super) fn unexpected(target: &Target, reason: &str) -> ProbeFailure {
    failure(
        "tls_failed",
        format!("TLS with {target} failed: {reason}; check what listens there"),
    )
}

/// The time ran out.
pub(super) fn silence(target: &Target, wire: &Wire, waited: Duration) -> ProbeFailure {
    let heard = wire.heard();
    if !is_tls(&heard) {
        return plain_text(target, &heard);
    }
    let waited = text::span(waited);
    let text = if heard.is_empty() {
        format!(
            "{target} accepted the connection and did not answer the TLS ClientHello within {waited}: its server hangs \
             or is overloaded, or something on the way accepts connections in its place; check the server's log, and \
             try --no-pacing"
        )
    } else {
        format!(
            "{target} stopped in the middle of the TLS handshake for {waited}: its server hangs, or large segments are \
             lost on the way (path MTU); check the server's log and the MTU"
        )
    };
    failure("timed_out", text)
}

/// The ClientHello did not get through.
pub(super) fn interrupted(
    target: &Target,
    chunks: u32,
    most: u32,
    interruption: Interruption,
) -> ProbeFailure {
    let pieces = if most > 1 {
        let plural = if chunks == 1 { "" } else { "s" };
        format!("after {chunks} piece{plural} of the TLS ClientHello")
    } else {
        "before it had the whole TLS ClientHello".to_owned()
    };
    let in_one = if most > 1 {
        "; if something on the way wants the ClientHello in one piece, use --no-pacing"
    } else {
        ""
    };
    let (how, detail) = match interruption {
        Interruption::Stalled(waited) => {
            return failure(
                "timed_out",
                format!(
                    "{target} accepted the connection and acknowledged nothing for {} {pieces}: segments are lost on \
                     the way, or the host died; check the path's loss and firewalls that track connections",
                    text::span(waited)
                ),
            );
        }
        Interruption::Ended | Interruption::Spoke => ("closed", String::new()),
        Interruption::Broken(error) => ("broke", format!(" ({})", text::plain(&error))),
    };
    // Who has read for a while and then leaves did not like what it read; a load balancer without a backend, and who
    // rejects this host, leaves at once.
    let result = if chunks > 1 { "no_tls" } else { "reset" };
    failure(
        result,
        format!(
            "{target} {how} the connection {pieces}{detail}: {}{in_one}",
            wordless(target)
        ),
    )
}

/// What a server may be that leaves without a word, and what to do.
fn wordless(target: &Target) -> String {
    let service = text::service(target.spec.role);
    if target.spec.role == Role::EtcdClient && target.spec.port == Role::EtcdPeer.default_port() {
        return format!(
            "2380 is usually the peer port: give HOST:{} for clients, or measure this port with --etcd-peer",
            Role::EtcdClient.default_port()
        );
    }
    format!(
        "it is no {service}, or one that serves plain http, or a load balancer without a healthy backend; check the \
         port, and that the server's URLs begin with https://"
    )
}

fn plain_text(target: &Target, heard: &[u8]) -> ProbeFailure {
    let service = text::service(target.spec.role);
    let said = text::first_words(heard, FIRST_WORDS);
    let meaning = if heard.starts_with(b"HTTP/") {
        format!(
            "it serves plain http, which no join uses; {}",
            https_remedy(target.spec.role)
        )
    } else {
        format!("it is no {service}; check the port")
    };
    failure(
        "no_tls",
        format!("{target} speaks no TLS (it sent `{said}`): {meaning}"),
    )
}

fn https_remedy(role: Role) -> &'static str {
    match role {
        Role::EtcdClient => {
            "give etcd https:// URLs (--listen-client-urls, --advertise-client-urls, with --cert-file and --key-file), \
             or check the port"
        }
        Role::EtcdPeer => {
            "give etcd https:// URLs (--listen-peer-urls, --initial-advertise-peer-urls, with --peer-cert-file and \
             --peer-key-file), or check the port"
        }
        Role::ApiServer => {
            "check the port, and let a load balancer there pass TCP through instead of speaking http itself"
        }
    }
}

/// The handshake was completed without HTTP/2, which gRPC needs. etcd always chooses it (`h2`, RFC 7301), and clients
/// refuse who does not.
pub(super) fn no_http2(target: &Target) -> ProbeFailure {
    failure(
        "no_http2",
        format!(
            "{target} speaks TLS and did not choose HTTP/2 (ALPN h2), without which etcd's clients refuse it: it is no \
             etcd, or a proxy that ends TLS before it; check the port, and let the proxy pass TCP through or offer h2"
        ),
    )
}

/// Any other end of a handshake.
pub(super) fn explain(
    target: &Target,
    tls: &ClientTls,
    wire: &Wire,
    report: &ProbeReport,
    error: &io::Error,
) -> ProbeFailure {
    let heard = wire.heard();
    let Some(tls_error) = alert::tls_error(error) else {
        return broken(target, &heard, error);
    };
    match tls_error {
        Error::InvalidCertificate(reason) => certificate::explain(target, tls, report, reason),
        _ if !is_tls(&heard) => plain_text(target, &heard),
        Error::AlertReceived(alert) => alerted(target, *alert),
        Error::PeerIncompatible(reason) => failure(
            "tls_failed",
            format!(
                "{target} and joinprobe have no TLS version or cipher in common ({reason:?}); TLS 1.2 or 1.3 with an \
                 ECDHE cipher is needed: check the server's TLS settings"
            ),
        ),
        other => unexpected(target, &other.to_string()),
    }
}

fn broken(target: &Target, heard: &[u8], error: &io::Error) -> ProbeFailure {
    let reset = matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    );
    if !reset && error.kind() != io::ErrorKind::UnexpectedEof {
        return unexpected(target, &text::plain(error));
    }
    let how = if reset { "reset" } else { "closed" };
    if heard.is_empty() {
        return failure(
            // FIN or RST depends on whether it had read everything before it closed.
            "no_tls",
            format!(
                "{target} {how} the connection in answer to a TLS ClientHello: {}",
                wordless(target)
            ),
        );
    }
    if !is_tls(heard) {
        return plain_text(target, heard);
    }
    failure(
        "tls_failed",
        format!(
            "{target} {how} the connection in the middle of the TLS handshake; its log says why"
        ),
    )
}

fn alerted(target: &Target, alert: AlertDescription) -> ProbeFailure {
    let remedy = match alert {
        AlertDescription::ProtocolVersion
        | AlertDescription::HandshakeFailure
        | AlertDescription::InsufficientSecurity => {
            "it wants a TLS version or cipher that joinprobe does not offer (1.2 and 1.3 are): check its TLS settings"
        }
        AlertDescription::UnrecognisedName => {
            "it serves other names than the one dialled: dial it by a name it knows"
        }
        AlertDescription::NoApplicationProtocol => match target.spec.role {
            Role::ApiServer => {
                "it speaks no HTTP/1.1 (ALPN): it is no API server, or a proxy that ends TLS before it; check the port"
            }
            Role::EtcdClient | Role::EtcdPeer => return no_http2(target),
        },
        _ => "its log says why",
    };
    failure(
        "tls_failed",
        format!(
            "{target} ended the TLS handshake with the alert `{}`; {remedy}",
            alert::words(alert)
        ),
    )
}
