//! Whether the target could be reached, trusted and asked.

use crate::measure::TargetMeasurement;
use crate::probe::{ClientCertificate, ProbeFailure, ProbeReport, Stage, TOO_SHORT, TlsState};
use crate::target::{Role, RoleName};
use crate::verdict::text;
use crate::verdict::{Finding, FindingState};

/// Ids: `reachable`, `tls`, `client-certificate`, `apiserver-readyz`, `connection-outcomes`.
pub(super) fn findings(measured: &TargetMeasurement) -> Vec<Finding> {
    let Some(probe) = &measured.probe else {
        return watched(measured);
    };
    let mut findings = vec![reachable(measured, probe)];
    if !failed_to_connect(probe) {
        findings.push(tls(probe));
        findings.extend(client_certificate(measured, probe));
        findings.extend(readyz(measured, probe));
    }
    findings
}

/// What is said of a target that had no time to answer.
pub(super) const HASTE: &str =
    "Nothing is known about this target; run again with a longer --timeout (10s is the default).";

/// A failure for want of time decides nothing.
pub(super) fn state_of(failure: &ProbeFailure) -> FindingState {
    if failure.result == TOO_SHORT {
        FindingState::Inconclusive
    } else {
        FindingState::Fail
    }
}

fn failed_to_connect(probe: &ProbeReport) -> bool {
    probe
        .failure
        .as_ref()
        .is_some_and(|failure| failure.stage <= Stage::Tcp)
}

fn reachable(measured: &TargetMeasurement, probe: &ProbeReport) -> Finding {
    match &probe.failure {
        Some(failure) if failure.stage <= Stage::Tcp => {
            Finding::plain("reachable", state_of(failure), failure.text.clone()).hint(
                match failure.result {
                    TOO_SHORT => HASTE,
                    "unresolved" => {
                        "The join cannot use this name either; check the name, /etc/hosts and the resolver of this node."
                    }
                    "local_error" => {
                        "This is about this node and not about the target; the join would meet it too."
                    }
                    "refused" => {
                        "The host answers but nothing listens on that port; check the port, and whether the server runs and listens on this address and not only on loopback."
                    }
                    _ => {
                        "The join needs this connection; check routing, firewalls and security groups between this node and that port."
                    }
                },
            )
        }
        _ => Finding::plain(
            "reachable",
            FindingState::Pass,
            match probe.stages.dns {
                Some(dns) => format!(
                    "{} accepts connections; its name resolved in {}",
                    measured.target,
                    text::ms(crate::measure::micros(dns))
                ),
                None => format!("{} accepts connections", measured.target),
            },
        ),
    }
}

fn tls(probe: &ProbeReport) -> Finding {
    if let Some(failure) = probe.failure.as_ref().filter(|f| f.stage == Stage::Tls) {
        return Finding::plain("tls", state_of(failure), failure.text.clone()).hint(
            match failure.result {
                TOO_SHORT => HASTE,
                "no_tls" => {
                    "kubeadm speaks only TLS to this port; check that it is the port of the right server."
                }
                "no_http2" => {
                    "The join talks to etcd by gRPC, which needs HTTP/2; a load balancer before etcd must pass TCP through."
                }
                "untrusted" => {
                    "The join will refuse this server for the same reason; check that the CA file is this cluster's."
                }
                "not_valid_now" => {
                "Compare this node's clock with the certificate's dates; renew the certificate if the clock is right."
            }
            "name_mismatch" => {
                    "The join will refuse this server for the same reason; use a name or address that its certificate holds."
                }
                _ => {
                    "The join needs a TLS connection to this server; check the server's log and any middlebox on the path."
                }
            },
        );
    }
    match probe.tls {
        TlsState::Verified => Finding::plain(
            "tls",
            FindingState::Pass,
            "the server's certificate was verified against the given CA",
        ),
        TlsState::Unverified => Finding::plain(
            "tls",
            FindingState::Skipped,
            "no CA was given, so the server's certificate was not verified and nothing secret was sent",
        ),
        TlsState::NotReached => Finding::plain("tls", FindingState::Skipped, "TLS was not reached"),
    }
}

fn client_certificate(measured: &TargetMeasurement, probe: &ProbeReport) -> Option<Finding> {
    const ID: &str = "client-certificate";
    if !measured.target.spec.role.is_etcd() {
        return None;
    }
    Some(match &probe.client_certificate {
        ClientCertificate::NotGiven => Finding::plain(
            ID,
            FindingState::Skipped,
            "no client certificate was given, as is usual before a join; the network is measured without one",
        ),
        ClientCertificate::Withheld => Finding::plain(
            ID,
            FindingState::Skipped,
            "a client certificate was given without a CA, so it was kept back: the server cannot be verified first",
        ),
        ClientCertificate::Accepted => Finding::plain(
            ID,
            FindingState::Pass,
            "the server accepted the client certificate",
        ),
        ClientCertificate::Rejected(alert) => Finding::plain(
            ID,
            FindingState::Warn,
            format!("the server refused the client certificate: {alert}"),
        )
        .hint("The network was measured all the same; renew or replace the certificate before the join uses it."),
        ClientCertificate::NotReached => Finding::plain(
            ID,
            FindingState::Skipped,
            "the server did not get as far as asking for a client certificate",
        ),
    })
}

fn readyz(measured: &TargetMeasurement, probe: &ProbeReport) -> Option<Finding> {
    const ID: &str = "apiserver-readyz";
    if measured.target.spec.role != Role::ApiServer {
        return None;
    }
    if let Some(failure) = probe.failure.as_ref().filter(|f| f.stage == Stage::Request) {
        return Some(
            Finding::plain(ID, state_of(failure), failure.text.clone()).hint(
                match failure.result {
                    TOO_SHORT => HASTE,
                    "no_backend" => {
                        "The join talks to this address first; see which API servers the load balancer holds for healthy, and why not the others."
                    }
                    "request_failed" => {
                        "The join talks to this address first, and needs an API server there; check the address and what stands before it."
                    }
                    _ => {
                        "The join talks to this API server first; check its health, or the load balancer's, before joining."
                    }
                },
            ),
        );
    }
    let status = probe.http_status?;
    let took = probe
        .stages
        .request
        .map(|took| format!(" in {}", text::ms(crate::measure::micros(took))))
        .unwrap_or_default();
    Some(match status {
        401 | 403 => Finding::plain(
            ID,
            FindingState::Pass,
            format!("GET /readyz was answered with {status}{took}: it does not answer anonymous requests, and it is there"),
        ),
        200..300 => Finding::plain(
            ID,
            FindingState::Pass,
            format!("GET /readyz was answered with {status}{took}"),
        ),
        _ => Finding::plain(
            ID,
            FindingState::Fail,
            format!("GET /readyz was answered with {status}{took}: the API server is not ready"),
        )
        .hint("The join talks to this API server first; wait until it is ready, or see /readyz?verbose for what it waits for."),
    })
}

/// Traffic that was only watched: how connections ended.
fn watched(measured: &TargetMeasurement) -> Vec<Finding> {
    const ID: &str = "connection-outcomes";
    let counters = &measured.counters;
    let failures: Vec<String> = [
        (counters.refused, "refused"),
        (counters.timed_out, "timed out"),
        (counters.unreachable, "unreachable"),
        (counters.failed_unknown, "failed (cause unknown)"),
        (counters.reset, "reset"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, word)| format!("{count} {word}"))
    .collect();
    let established = text::count(counters.established, "connection");
    vec![if failures.is_empty() {
        Finding::plain(
            ID,
            FindingState::Pass,
            format!("{established} established, none failed"),
        )
    } else {
        Finding::plain(
            ID,
            FindingState::Warn,
            format!("{established} established, {}", failures.join(", ")),
        )
        .hint("A few failures are usual while a member or API server starts; if they go on, check that it runs and that nothing on the path drops or resets connections.")
    }]
}
