//! Whom to trust as API server.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{PlanError, Planning, certificates};
use crate::discover::Origin;
use crate::discover::online::{ApiServer, Trust, api_server_trust};
use crate::target::Role;
use crate::tls::{CaBundle, ClientTls};
use crate::verdict::{Finding, FindingState};

const ID: &str = "apiserver-trust";
/// Pause before an API server that did not answer is asked again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Decides, and says how.
pub(super) async fn trust(planning: &mut Planning<'_>) -> Result<ClientTls, PlanError> {
    let ca = if let Some(path) = &planning.request.credentials.apiserver_ca {
        Some(CaBundle::load(path)?)
    } else if planning
        .targets
        .iter()
        .any(|target| target.spec.role == Role::ApiServer)
    {
        decide(planning).await
    } else {
        None
    };
    if let Some(ca) = &ca {
        let findings = certificates::authority("apiserver-ca", ca);
        planning.findings.extend(findings);
    }
    let tls = ClientTls::new(ca, None);
    let named = planning
        .targets
        .iter()
        .find_map(|target| target.server_name.clone());
    Ok(match named {
        Some(name) => tls.with_server_name(name),
        None => tls,
    })
}

async fn decide(planning: &mut Planning<'_>) -> Option<std::sync::Arc<CaBundle>> {
    let outcome = loop {
        let server = server(planning).await;
        let outcome = api_server_trust(
            &planning.found.api_trust,
            server.as_ref(),
            planning.deadline(),
        )
        .await;
        if !outcome.may_change || Instant::now() + RETRY_PAUSE >= planning.request.retry_until {
            break outcome;
        }
        sleep(RETRY_PAUSE).await;
    };
    for warning in outcome.warnings {
        planning.say(ID, FindingState::Warn, warning);
    }
    match outcome.trust {
        Trust::Ca(bundle) => {
            planning.say(ID, FindingState::Pass, outcome.text);
            Some(bundle)
        }
        Trust::None => {
            if let Some(Origin::File { .. }) = &planning.found.api_trust.skips_verification {
                planning.say(
                    ID,
                    FindingState::Warn,
                    "the join configuration sets unsafeSkipCAVerification: whoever has the token can pose as the API \
                     server",
                );
            }
            let (state, text) = match &planning.found.api_trust.pins {
                // kubeadm refuses to join then.
                Some(pins) => (
                    FindingState::Warn,
                    format!(
                        "{}; so the CA hash pinned in {} could not be checked",
                        outcome.text, pins.origin
                    ),
                ),
                None => (FindingState::Skipped, outcome.text),
            };
            planning.findings.push(
                Finding::plain(ID, state, text).hint("Give the cluster's CA with --apiserver-ca."),
            );
            None
        }
        Trust::Refused => {
            planning.refused = Some(outcome.text);
            None
        }
    }
}

/// The API server to ask: the first that is measured.
pub(super) async fn server(planning: &Planning<'_>) -> Option<ApiServer> {
    let target = planning
        .targets
        .iter()
        .find(|target| target.spec.role == Role::ApiServer)?;
    let resolved = planning
        .resolver
        .resolve(&target.spec, planning.deadline())
        .await
        .ok()?;
    Some(ApiServer {
        spec: target.spec.clone(),
        address: resolved.targets.first()?.address?,
        server_name: target.server_name.clone(),
    })
}
