//! Says why a server's certificate is not trusted.

use rustls::CertificateError;
use rustls::pki_types::UnixTime;

use super::failure;
use crate::probe::report::{ProbeFailure, ProbeReport};
use crate::target::{Role, Target};
use crate::tls::{ClientTls, utc};

pub(super) fn explain(
    target: &Target,
    tls: &ClientTls,
    report: &ProbeReport,
    reason: &CertificateError,
) -> ProbeFailure {
    let ca = tls
        .ca()
        .map_or_else(String::new, |ca| ca.path().display().to_string());
    let issuer = report
        .server_certificate
        .as_ref()
        .map_or_else(String::new, |facts| format!(" (issuer `{}`)", facts.issuer));
    match reason {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => failure(
            "untrusted",
            format!(
                "the certificate of {target}{issuer} is not signed by the CA in {ca}: it belongs to another cluster or \
                 another CA of this one, or the traffic is intercepted; {}",
                ca_remedy(target.spec.role)
            ),
        ),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            named(target, report)
        }
        CertificateError::ExpiredContext { not_after, .. } => failure(
            "not_valid_now",
            format!(
                "the certificate of {target} expired on {}; renew it on its node (kubeadm certs renew there, then restart the static pod), or correct this host's \
                 clock",
                date(*not_after)
            ),
        ),
        CertificateError::NotValidYetContext { not_before, .. } => failure(
            "not_valid_now",
            format!(
                "the certificate of {target} is not valid before {}; correct this host's clock, or the one where it \
                 was issued",
                date(*not_before)
            ),
        ),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            failure(
                "untrusted",
                format!(
                    "the certificate of {target}{issuer} is not meant for servers (extended key usage); issue it again with \
                 server authentication"
                ),
            )
        }
        other => failure(
            "untrusted",
            format!(
                "the certificate of {target}{issuer} cannot be verified: {other}; check it with openssl x509"
            ),
        ),
    }
}

fn ca_remedy(role: Role) -> &'static str {
    match role {
        Role::EtcdClient | Role::EtcdPeer => {
            "give the CA of this cluster's etcd (kubeadm: /etc/kubernetes/pki/etcd/ca.crt)"
        }
        Role::ApiServer => {
            "give the CA of this cluster's API server (kubeadm: /etc/kubernetes/pki/ca.crt)"
        }
    }
}

fn named(target: &Target, report: &ProbeReport) -> ProbeFailure {
    let host = &target.spec.host;
    let names = report
        .server_certificate
        .as_ref()
        .map_or_else(String::new, |facts| facts.names.join(", "));
    let bears = if names.is_empty() {
        "bears no names at all".to_owned()
    } else {
        format!("is for {names}")
    };
    failure(
        "name_mismatch",
        format!(
            "the certificate of {target} {bears}, not for {host}; dial a name or address it bears, or issue it again \
             with {host} as a subject alternative name"
        ),
    )
}

fn date(at: UnixTime) -> String {
    utc(i64::try_from(at.as_secs()).unwrap_or(i64::MAX))
}
