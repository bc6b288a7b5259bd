//! What the cluster itself says, where that was asked for.

use std::path::Path;
use std::sync::Arc;

use super::{Planning, apiserver};
use crate::discover::online::{self, OnlineError};
use crate::discover::{Kubeconfig, Login, Pem, Secret};
use crate::target::Role;
use crate::tls::{ClientIdentity, ClientTls, CredentialError, Subject, mint};
use crate::verdict::{Finding, FindingState};

const PODS: &str = "discover-etcd";
const MEMBERS: &str = "discover-members";

/// Of the users that Kubernetes' own policy knows, the one that may list pods and do least besides; the group only
/// makes it recognisable in the audit log.
const SUBJECT: Subject = Subject {
    common_name: "system:kube-scheduler",
    organisation: "joinprobe",
};

/// What to log in to the API server with.
struct Credentials {
    identity: Option<Arc<ClientIdentity>>,
    bearer: Option<Secret>,
    words: String,
}

/// Lists the etcd pods, and adds their addresses to the targets.
pub(super) async fn etcd_pods(planning: &mut Planning<'_>, api: &ClientTls) {
    let Some(server) = apiserver::server(planning).await else {
        planning.say(
            PODS,
            FindingState::Warn,
            "--discover-etcd found no API server that could be asked: name one with --apiserver",
        );
        return;
    };
    if planning.refused.is_some() || api.ca().is_none() {
        planning.findings.push(
            Finding::plain(
                PODS,
                FindingState::Warn,
                format!(
                    "{} was not asked for the etcd pods: it could not be verified, and credentials only go to a \
                     verified server",
                    server.spec
                ),
            )
            .hint("Give the cluster's CA with --apiserver-ca."),
        );
        return;
    }
    let Some(credentials) = credentials(planning) else {
        planning.say(
            PODS,
            FindingState::Warn,
            "--discover-etcd needs a kubeconfig that may list pods (--kubeconfig), or pki/ca.key on this node to sign a \
             client certificate with",
        );
        return;
    };
    let tls = api.with_identity(credentials.identity.clone());
    let deadline = planning.deadline();
    match online::etcd_pods(&server, &tls, credentials.bearer.as_ref(), deadline).await {
        Err(OnlineError(reason)) => planning.say(PODS, FindingState::Warn, reason),
        Ok(found) => {
            for warning in found.warnings {
                planning.say(PODS, FindingState::Warn, warning);
            }
            let text = format!(
                "{} lists {} etcd pods (one more connection, with {})",
                server.spec,
                found.pods.len(),
                credentials.words
            );
            let state = if found.pods.is_empty() {
                FindingState::Warn
            } else {
                FindingState::Pass
            };
            planning.say(PODS, state, text);
            for client in found.pods.into_iter().flat_map(|pod| pod.clients) {
                planning.add(client);
            }
        }
    }
}

/// A kubeconfig's, else a certificate signed here.
fn credentials(planning: &mut Planning<'_>) -> Option<Credentials> {
    for kubeconfig in &planning.found.kubeconfigs {
        match of_kubeconfig(kubeconfig) {
            Ok(Some(credentials)) => return Some(credentials),
            Ok(None) => {}
            Err(error) => planning.warn(PODS, &error),
        }
    }
    let signer = planning.found.cluster_signer.as_ref()?;
    match mint(&signer.certificate, &signer.key, SUBJECT) {
        Ok(identity) => Some(Credentials {
            identity: Some(identity),
            bearer: None,
            words: format!(
                "a client certificate for {} valid 5 minutes, made in memory with {}",
                SUBJECT.common_name,
                signer.key.display()
            ),
        }),
        Err(error) => {
            planning.warn(PODS, &error);
            None
        }
    }
}

fn of_kubeconfig(kubeconfig: &Kubeconfig) -> Result<Option<Credentials>, CredentialError> {
    let Login { pair, token, .. } = &kubeconfig.login;
    let words = format!("the credentials of {}", kubeconfig.origin);
    if let Some((certificate, key)) = pair {
        let name = std::path::PathBuf::from(kubeconfig.origin.to_string());
        let identity = ClientIdentity::load_parts(part(certificate, &name), part(key, &name))?;
        return Ok(Some(Credentials {
            identity: Some(identity),
            bearer: None,
            words,
        }));
    }
    Ok(token.clone().map(|token| Credentials {
        identity: None,
        bearer: Some(token),
        words,
    }))
}

fn part<'a>(pem: &'a Pem, name: &'a Path) -> (&'a Path, Option<&'a [u8]>) {
    match pem {
        Pem::File(path) => (path, None),
        Pem::Inline(bytes) => (name, Some(bytes)),
    }
}

/// Asks for the member list, and adds every member's addresses to the targets.
pub(super) async fn members(planning: &mut Planning<'_>, etcd: &ClientTls) {
    let candidates: Vec<_> = planning
        .targets
        .iter()
        .filter(|target| target.spec.role == Role::EtcdClient)
        .map(|target| target.spec.clone())
        .collect();
    let mut reasons = Vec::new();
    for spec in candidates {
        let deadline = planning.deadline();
        let address = match planning.resolver.resolve(&spec, deadline).await {
            Ok(resolved) => resolved.targets.first().and_then(|target| target.address),
            Err(failure) => {
                reasons.push(failure.text);
                continue;
            }
        };
        let Some(address) = address else { continue };
        match online::members(&spec, address, etcd, deadline).await {
            Ok(members) => return add_members(planning, &spec.to_string(), members),
            Err(OnlineError(reason)) => reasons.push(reason),
        }
    }
    let text = if reasons.is_empty() {
        "--discover-members knows no etcd member to ask: name one with --etcd, or add --discover-etcd".to_owned()
    } else {
        format!("the member list was not given: {}", reasons.join("; "))
    };
    planning.say(MEMBERS, FindingState::Warn, text);
}

fn add_members(planning: &mut Planning<'_>, asked: &str, members: Vec<online::Member>) {
    planning.say(
        MEMBERS,
        FindingState::Pass,
        format!(
            "{asked} lists {} etcd members (one more connection and read)",
            members.len()
        ),
    );
    // The list is what is true now; what a manifest said when this member started is not.
    planning.targets.retain(|target| !target.tentative);
    for member in members {
        if member.is_learner {
            planning.say(
                MEMBERS,
                FindingState::Skipped,
                format!(
                    "the member {} is a learner: it receives the data but does not vote or answer reads until it is \
                     promoted",
                    member.name
                ),
            );
        }
        if member.clients.is_empty() {
            planning.say(
                MEMBERS,
                FindingState::Warn,
                "a member was added and has never started: the cluster counts it as down"
                    .to_owned(),
            );
        }
        for address in member.clients.into_iter().chain(member.peers) {
            planning.add(address);
        }
    }
}
