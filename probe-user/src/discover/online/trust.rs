//! Decides whom to trust as API server.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::time::Instant;

use super::api::{ApiServer, OnlineError};
use super::cluster_info::{ClusterInfo, PATH, Signed};
use crate::discover::ca_hash::CaHash;
use crate::discover::discovery::ApiTrust;
use crate::discover::kubeconfig::Pem;
use crate::discover::origin::Found;
use crate::tls::{CaBundle, ClientTls, CredentialError};

/// Whom to trust, and why.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Servers are verified against this CA.
    Ca(Arc<CaBundle>),
    /// Nothing can verify a server: it is measured, called unverified, and sent nothing secret.
    None,
    /// What was found contradicts the pins: whoever answers is not the API server that was meant.
    Refused,
}

/// The decision, in words for the report.
#[derive(Clone, Debug)]
pub struct TrustOutcome {
    /// Whom to trust.
    pub trust: Trust,
    /// How that was found; one sentence.
    pub text: String,
    /// What else a reader should know; one sentence each, each worth a warning.
    pub warnings: Vec<String>,
    /// Connections made to find out, beside the measured ones.
    pub connections: u32,
    /// The server could not be asked; it may not be ready yet.
    pub may_change: bool,
}

/// Decides whom to trust: a CA on disk if the pins allow it, else the one of cluster-info that the pins or the token
/// vouch for. `server` is asked only where the files leave it open.
pub async fn api_server_trust(
    found: &ApiTrust,
    server: Option<&ApiServer>,
    deadline: Instant,
) -> TrustOutcome {
    let pins = found.pins.as_ref().map(|pins| pins.value.as_slice());
    let mut warnings = Vec::new();
    if let Some(outcome) = from_disk(found, pins, &mut warnings) {
        return outcome;
    }
    let Some(server) = server.filter(|_| pins.is_some() || found.token.is_some()) else {
        return TrustOutcome {
            trust: Trust::None,
            text: "no CA, pin or token was found that could verify the API server".to_owned(),
            warnings,
            connections: 0,
            may_change: false,
        };
    };
    let mut outcome = from_cluster_info(found, pins, server, deadline).await;
    outcome.warnings.splice(0..0, warnings);
    outcome.connections = 1;
    outcome
}

fn from_disk(
    found: &ApiTrust,
    pins: Option<&[CaHash]>,
    warnings: &mut Vec<String>,
) -> Option<TrustOutcome> {
    for ca in &found.cas {
        let bundle = match load(ca) {
            Ok(bundle) => bundle,
            Err(error) => {
                warnings.push(error.to_string());
                continue;
            }
        };
        let matches = |pins| !CaHash::matching(pins, bundle.certificates()).is_empty();
        let text = match (pins, &found.pins) {
            (Some(pins), Some(pinned)) if !matches(pins) => {
                warnings.push(format!(
                    "the CA of {} does not match the hash pinned in {}: one of them is of another cluster",
                    ca.origin, pinned.origin
                ));
                continue;
            }
            (Some(_), Some(pinned)) => format!(
                "the API server is verified against {}, which matches the hash pinned in {}",
                ca.origin, pinned.origin
            ),
            _ => format!("the API server is verified against {}", ca.origin),
        };
        return Some(TrustOutcome {
            trust: Trust::Ca(bundle),
            text,
            warnings: std::mem::take(warnings),
            connections: 0,
            may_change: false,
        });
    }
    None
}

fn load(ca: &Found<Pem>) -> Result<Arc<CaBundle>, CredentialError> {
    match &ca.value {
        Pem::File(path) => CaBundle::load(path),
        Pem::Inline(pem) => CaBundle::parse(&PathBuf::from(ca.origin.to_string()), pem),
    }
}

async fn from_cluster_info(
    found: &ApiTrust,
    pins: Option<&[CaHash]>,
    server: &ApiServer,
    deadline: Instant,
) -> TrustOutcome {
    let unknown = |text: String| TrustOutcome {
        trust: Trust::None,
        text,
        warnings: Vec::new(),
        connections: 1,
        may_change: false,
    };
    // Nobody is trusted yet, so nothing is shown: no certificate, no token.
    let answer = match server
        .get(PATH, &ClientTls::default(), None, deadline)
        .await
    {
        Ok(answer) => answer,
        Err(OnlineError(reason)) => {
            return TrustOutcome {
                may_change: true,
                ..unknown(format!("cluster-info could not be read: {reason}"))
            };
        }
    };
    let name = server.spec.to_string();
    match answer.status {
        200 => {}
        401 | 403 => {
            return unknown(format!(
                "{name} does not let anonymous clients read cluster-info (HTTP {}), which kubeadm's discovery needs",
                answer.status
            ));
        }
        404 => {
            return unknown(format!(
                "{name} has no cluster-info, which kubeadm's discovery needs: set it up with `kubeadm init phase \
                 bootstrap-token`"
            ));
        }
        status => return unknown(format!("{name} answered HTTP {status} for cluster-info")),
    }
    let body = String::from_utf8_lossy(&answer.body);
    let token = found.token.as_ref().map(|token| &token.value);
    let info = match ClusterInfo::parse(&name, &body, token) {
        Ok(info) => info,
        Err(error) => return unknown(error.to_string()),
    };
    let warnings = signature_warnings(info.signed, token.map_or("", |token| token.id()));
    let refused = |text| TrustOutcome {
        trust: Trust::Refused,
        text,
        warnings: warnings.clone(),
        connections: 1,
        may_change: false,
    };
    let vouched = info.vouched(pins);
    if vouched.is_empty() {
        return match &found.pins {
            Some(pins) => refused(format!(
                "{name} names a CA ({}) that does not match the hash pinned in {}: something else answers at that \
                 address, or the hash is of another cluster; nothing secret was sent",
                info.hashes(),
                pins.origin
            )),
            None => TrustOutcome {
                warnings,
                ..unknown(format!(
                    "no hash is pinned, and the token does not vouch for the CA that {name} names"
                ))
            },
        };
    }
    let bundle = match CaBundle::of(&ClusterInfo::path(&name), vouched) {
        Ok(bundle) => bundle,
        Err(error) => return unknown(error.to_string()),
    };
    if let Err(error) = answer.session.verifier.verify_by(&bundle) {
        return refused(format!(
            "{name} names the right CA but shows a certificate that this CA does not vouch for ({error}): something \
             else answers at that address, or its certificate lacks that name; nothing secret was sent"
        ));
    }
    let how = match (&found.pins, info.signed) {
        (Some(pins), _) => format!("matches the hash pinned in {}", pins.origin),
        (None, _) => "is signed with the bootstrap token (no hash is pinned)".to_owned(),
    };
    TrustOutcome {
        trust: Trust::Ca(bundle),
        text: format!(
            "the API server is verified against the CA in its cluster-info, which {how} (one more connection)"
        ),
        warnings,
        connections: 1,
        may_change: false,
    }
}

fn signature_warnings(signed: Signed, id: &str) -> Vec<String> {
    match signed {
        Signed::NoToken | Signed::Right => Vec::new(),
        Signed::Missing => vec![format!(
            "the bootstrap token with id {id} is not known to the cluster or has expired, so `kubeadm join` will fail: \
             make a new one with `kubeadm token create`"
        )],
        Signed::Wrong => vec![format!(
            "cluster-info is not signed with the bootstrap token with id {id}, so `kubeadm join` will fail: the second \
             half of the token is wrong, or something else answers"
        )],
    }
}
