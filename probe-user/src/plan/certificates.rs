//! What certificates say about themselves, before anybody is asked to accept them.

use std::time::SystemTime;

use crate::measure::TargetMeasurement;
use crate::probe::TlsState;
use crate::tls::{CaBundle, CertificateFacts, ClientIdentity, Validity};
use crate::verdict::{Finding, FindingState};

/// `kubeadm certs renew` leaves CAs alone.
const RENEW_CA: &str = "kubeadm renews no CA: rotate it by hand on every node (Kubernetes documentation, \"Manual Rotation \
                        of CA Certificates\").";

const RENEW_CLIENT: &str =
    "Renew it with `kubeadm certs renew` on this node, or have whoever issued it issue a new one.";

const RENEW_SERVER: &str = "Renew it on the node that serves it (`kubeadm certs renew` there) and restart that static pod, \
                            which otherwise keeps the old one.";

/// A CA's own dates. Verification does not look at them here; etcd and kubeadm do.
pub(super) fn authority(id: &'static str, ca: &CaBundle) -> Vec<Finding> {
    ca.facts()
        .iter()
        .filter_map(|facts| {
            let what = format!("the CA {} in {}", facts.subject, ca.path().display());
            dated(id, &what, facts, RENEW_CA)
        })
        .collect()
}

/// A client certificate: dates, usage, and who may read its key.
pub(super) fn client(identity: &ClientIdentity) -> Vec<Finding> {
    const ID: &str = "etcd-client-certificate";
    let facts = identity.facts();
    let path = identity.certificate_path().display();
    let mut findings = Vec::new();
    findings.extend(dated(
        ID,
        &format!("the client certificate {path}"),
        facts,
        RENEW_CLIENT,
    ));
    if !facts.allows_client {
        findings.push(
            Finding::plain(
                ID,
                FindingState::Warn,
                format!(
                    "the client certificate {path} is not meant for clients (extended key usage)"
                ),
            )
            .hint("etcd refuses it; issue one with the usage clientAuth."),
        );
    }
    if identity.key_open_to_others() {
        findings.push(
            Finding::plain(
                "key-permissions",
                FindingState::Warn,
                format!("the key of {path} may be read by every user of this host"),
            )
            .hint("Whoever reads it can read and write all of etcd; chmod 600 it."),
        );
    }
    if findings.is_empty() {
        findings.push(Finding::plain(
            ID,
            FindingState::Pass,
            format!(
                "etcd is shown the client certificate {path} ({}), valid {}",
                facts.subject,
                facts.period()
            ),
        ));
    }
    findings
}

/// The certificate that a server showed. One that is expired or bears another name was refused by the probe already.
#[must_use]
pub fn server_certificate(measured: &TargetMeasurement) -> Option<Finding> {
    let probe = measured.probe.as_ref()?;
    let facts = probe.server_certificate.as_ref()?;
    let validity = facts.validity(SystemTime::now());
    if validity != Validity::ExpiresSoon && probe.tls == TlsState::Verified {
        return None;
    }
    let what = format!("the certificate of {}", measured.target);
    dated("server-certificate", &what, facts, RENEW_SERVER)
}

fn dated(id: &'static str, what: &str, facts: &CertificateFacts, renew: &str) -> Option<Finding> {
    let period = facts.period();
    let (text, hint) = match facts.validity(SystemTime::now()) {
        Validity::Valid => return None,
        Validity::ExpiresSoon => (
            format!("{what} expires soon: it is valid {period}"),
            renew.to_owned(),
        ),
        Validity::Expired => (
            format!("{what} has expired: it was valid {period}"),
            format!("{renew} Check this host's clock too."),
        ),
        Validity::NotYetValid => (
            format!("{what} is not valid yet, but {period}"),
            "Either this host's clock is behind or the issuer's was ahead; check both (timedatectl)."
                .to_owned(),
        ),
    };
    Some(Finding::plain(id, FindingState::Warn, text).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_certificate_has_its_own_remedy() {
        let facts = CertificateFacts {
            subject: "CN=any".to_owned(),
            issuer: "CN=any".to_owned(),
            names: Vec::new(),
            not_before: 0,
            not_after: 1,
            is_ca: false,
            allows_client: true,
        };
        let hint = |renew| dated("etcd-ca", "it", &facts, renew).unwrap().hint;
        assert!(hint(RENEW_CA).contains("by hand") && !hint(RENEW_CA).contains("certs renew"));
        assert!(hint(RENEW_SERVER).contains("restart"));
        assert!(hint(RENEW_CLIENT).contains("certs renew") && hint(RENEW_CLIENT).contains("clock"));
    }
}
