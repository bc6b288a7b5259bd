//! Where the RTT to an API server ends: at the API server, or at something in front of it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::measure::TargetMeasurement;
use crate::probe::TlsState;
use crate::target::{Role, RoleName};
use crate::verdict::{Finding, FindingState};

const ID: &str = "apiserver-path-end";

/// What the addresses and the certificate give away; `None` where they give nothing away.
///
/// In a stacked cluster the API servers run where the etcd members do, so that an address no member has belongs to
/// something in front. An address that the verified certificate does not hold is not the API server's own either.
#[must_use]
pub fn path_end(
    measured: &TargetMeasurement,
    all: &[TargetMeasurement],
    stacked: bool,
) -> Option<Finding> {
    let target = &measured.target;
    if target.spec.role != Role::ApiServer {
        return None;
    }
    let probe = measured.probe.as_ref()?;
    let certificate = probe.server_certificate.as_ref()?;
    let address = target.address?.ip().to_canonical();
    let members = members(all);
    let say = |state, text: String| Some(Finding::plain(ID, state, text));
    if members.contains(&address) {
        return say(
            FindingState::Pass,
            format!(
                "{target} is the address of an etcd member too: the RTT ends at the API server itself"
            ),
        );
    }
    let mut evidence = Vec::new();
    if address.is_loopback() {
        evidence.push("it is an address of this host".to_owned());
    }
    if !members.is_empty() && stacked {
        evidence.push("none of the etcd members has that address".to_owned());
    }
    let holds = certificate
        .names
        .iter()
        .filter_map(|name| name.parse::<IpAddr>().ok())
        .any(|name| name.to_canonical() == address);
    if probe.tls == TlsState::Verified && !holds {
        evidence.push("the API server's certificate does not hold that address".to_owned());
    }
    if evidence.is_empty() {
        return None;
    }
    Some(
        Finding::plain(
            ID,
            FindingState::Skipped,
            format!(
                "the RTT to {target} seems to end at a load balancer or address translation in front of the API \
                 servers, not at one of them: {}",
                evidence.join(", and ")
            ),
        )
        .hint("Measure the API servers behind it with --apiserver HOST:6443 for each."),
    )
}

fn members(all: &[TargetMeasurement]) -> BTreeSet<IpAddr> {
    all.iter()
        .filter(|measured| measured.target.spec.role.is_etcd())
        .filter_map(|measured| measured.target.address)
        .map(|address| address.ip().to_canonical())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Counters, Distributions, Opener};
    use crate::probe::ProbeReport;
    use crate::target::{Side, Target, TargetSpec};
    use crate::tls::CertificateFacts;

    fn measured(role: Role, address: &str, names: &[&str]) -> TargetMeasurement {
        let address: IpAddr = address.parse().unwrap();
        let port = role.default_port();
        let mut report = ProbeReport::new(None);
        report.tls = TlsState::Verified;
        report.server_certificate = Some(CertificateFacts {
            subject: "CN=kube-apiserver".to_owned(),
            issuer: "CN=kubernetes".to_owned(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            not_before: 0,
            not_after: i64::MAX,
            is_ca: false,
            allows_client: true,
        });
        TargetMeasurement {
            opener: Opener::default(),
            sampled: None,
            target: Target {
                spec: TargetSpec {
                    role,
                    host: address.to_string(),
                    port,
                },
                address: Some((address, port).into()),
            },
            side: Side::Client,
            distributions: Distributions::default(),
            counters: Counters::default(),
            probe: Some(report),
        }
    }

    fn judge(address: &str, names: &[&str], members: &[&str], stacked: bool) -> Option<Finding> {
        let api = measured(Role::ApiServer, address, names);
        let mut all = vec![api.clone()];
        all.extend(
            members
                .iter()
                .map(|member| measured(Role::EtcdClient, member, &[])),
        );
        path_end(&api, &all, stacked)
    }

    #[test]
    fn a_members_address_is_the_api_servers() {
        let finding = judge("10.1.0.1", &["10.1.0.1"], &["10.1.0.1"], true).unwrap();
        assert_eq!(finding.state, FindingState::Pass);
        // IPv4 through an IPv6 socket is still the same host.
        let finding = judge("::ffff:10.1.0.1", &[], &["10.1.0.1"], true).unwrap();
        assert_eq!(finding.state, FindingState::Pass);
    }

    #[test]
    fn evidence_is_named() {
        let text = |finding: Option<Finding>| finding.unwrap().text;
        let in_front = text(judge("10.1.0.9", &["10.1.0.9"], &["10.1.0.1"], true));
        assert!(in_front.contains("none of the etcd members"), "{in_front}");
        let nat = text(judge("192.0.2.1", &["10.1.0.1"], &[], true));
        assert!(nat.contains("does not hold that address"), "{nat}");
        let local = text(judge("127.0.0.1", &["127.0.0.1"], &[], true));
        assert!(local.contains("this host"), "{local}");
    }

    #[test]
    fn without_evidence_nothing_is_said() {
        assert!(judge("10.1.0.9", &["10.1.0.9"], &[], true).is_none());
        // Members that are external, or known only by a flag, say nothing about where API servers run.
        assert!(judge("10.1.0.9", &["10.1.0.9"], &["10.2.0.1"], false).is_none());
        let member = measured(Role::EtcdClient, "10.1.0.1", &[]);
        assert!(path_end(&member, std::slice::from_ref(&member), true).is_none());
    }
}
