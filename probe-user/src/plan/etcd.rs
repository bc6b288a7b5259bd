//! Whom to trust as etcd, and what to show it.

use std::sync::Arc;
use std::time::SystemTime;

use super::{PlanError, Planning, certificates};
use crate::tls::{CaBundle, ClientIdentity, ClientTls, MINTED_VALIDITY, Subject, Validity, mint};
use crate::verdict::FindingState;

const ID: &str = "etcd-client-certificate";

/// Whoever etcd's CA signed may do anything in a cluster without etcd's own user accounts, and nothing in one with
/// them: the name is there to be recognised.
const SUBJECT: Subject = Subject {
    common_name: "joinprobe",
    organisation: "joinprobe",
};

/// Decides, and says how.
pub(super) fn trust(planning: &mut Planning<'_>) -> Result<ClientTls, PlanError> {
    let given = &planning.request.credentials;
    let is_etcd = |role: crate::target::Role| crate::target::RoleName::is_etcd(role);
    let needed = planning
        .targets
        .iter()
        .any(|target| is_etcd(target.spec.role))
        || given.etcd_ca.is_some();
    if !needed {
        return Ok(ClientTls::default());
    }
    let (ca, identity) = if let Some(path) = &given.etcd_ca {
        let identity = given
            .etcd_client
            .as_ref()
            .map(|(certificate, key)| ClientIdentity::load(certificate, key))
            .transpose()?;
        (Some(CaBundle::load(path)?), identity)
    } else {
        found(planning)
    };
    let (ca, identity) = match identity {
        None if given.mint_etcd_client => minted(planning, ca),
        identity => (ca, identity),
    };
    if let Some(ca) = &ca {
        let findings = certificates::authority("etcd-ca", ca);
        planning.findings.extend(findings);
    }
    if let Some(identity) = &identity {
        let findings = certificates::client(identity);
        planning.findings.extend(findings);
    }
    Ok(ClientTls::new(ca, identity))
}

type Pair = (Option<Arc<CaBundle>>, Option<Arc<ClientIdentity>>);

/// The first pair on disk that is valid now; else the first that loads; else a CA alone.
fn found(planning: &mut Planning<'_>) -> Pair {
    let mut second_best: Pair = (None, None);
    for credential in &planning.found.etcd_credentials {
        let ca = match CaBundle::load(&credential.ca) {
            Ok(ca) => ca,
            Err(error) => {
                planning.warn("etcd-ca", &error);
                continue;
            }
        };
        let Some((certificate, key)) = &credential.pair else {
            second_best.0.get_or_insert(ca);
            continue;
        };
        match ClientIdentity::load(certificate, key) {
            Ok(identity) => {
                let validity = identity.facts().validity(SystemTime::now());
                if matches!(validity, Validity::Valid | Validity::ExpiresSoon) {
                    return (Some(ca), Some(identity));
                }
                if second_best.1.is_none() {
                    second_best = (Some(ca), Some(identity));
                }
            }
            Err(error) => planning.warn(ID, &error),
        }
    }
    second_best
}

fn minted(planning: &mut Planning<'_>, ca: Option<Arc<CaBundle>>) -> Pair {
    let Some(signer) = &planning.found.etcd_signer else {
        planning.say(
            ID,
            FindingState::Warn,
            "--etcd-mint-client-cert was given, but there is no etcd/ca.key on this node to sign with",
        );
        return (ca, None);
    };
    let minted = mint(&signer.certificate, &signer.key, SUBJECT).and_then(|identity| {
        // The CA that signs is also the one that signed the members.
        let ca = ca
            .clone()
            .map_or_else(|| CaBundle::load(&signer.certificate), Ok)?;
        Ok((ca, identity))
    });
    match minted {
        Ok((ca, identity)) => {
            planning.say(
                "etcd-minted-certificate",
                FindingState::Pass,
                format!(
                    "a client certificate valid {} minutes was made in memory with {}; nothing was written",
                    MINTED_VALIDITY.as_secs() / 60,
                    signer.key.display()
                ),
            );
            (Some(ca), Some(identity))
        }
        Err(error) => {
            planning.warn(ID, &error);
            (ca, None)
        }
    }
}
