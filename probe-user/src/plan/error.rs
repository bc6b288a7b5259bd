//! Why there is nothing to measure, or nothing to measure it with.

use crate::discover::{DiscoverError, Discovery, Hints};
use crate::tls::CredentialError;
use crate::verdict::{Finding, FindingState};

/// Each is one sentence with the reason and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A file on this node is no good.
    #[error(transparent)]
    Discover(#[from] DiscoverError),
    /// Credentials that were given are unusable.
    #[error(transparent)]
    Credentials(#[from] CredentialError),
    /// Nothing was named and nothing was found.
    #[error(
        "no targets: none was named and none was found ({}); {remedy}name what this node must reach, for example \
         `joinprobe preflight --etcd 10.0.0.1:2379 --apiserver 10.0.0.1:6443`", .lacking.join("; ")
    )]
    NoTargets {
        /// What each source lacks, a clause each.
        lacking: Vec<String>,
        /// What else than naming them would help, with what leads on.
        remedy: &'static str,
    },
}

impl PlanError {
    /// Nothing was named and nothing was found: says what each source lacks.
    pub(super) fn no_targets(hints: &Hints, found: &Discovery, findings: &[Finding]) -> Self {
        let read = hints
            .join_config
            .as_ref()
            .map(|path| path.display().to_string())
            .or_else(|| found.node_origin.as_ref().map(ToString::to_string));
        let mut lacking: Vec<String> = read
            .iter()
            .map(|file| {
                format!(
                    "{file} names neither an API server (discovery.bootstrapToken.apiServerEndpoint, discovery.file) nor \
                     an external etcd (etcd.external.endpoints)"
                )
            })
            .collect();
        let failed = findings
            .iter()
            .filter(|finding| finding.state == FindingState::Warn);
        lacking.extend(failed.map(|finding| finding.text.clone()));
        if !found.absent.is_empty() {
            let absent: Vec<_> = found
                .absent
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            lacking.push(format!("{} not there", absent.join(", ")));
        }
        if lacking.is_empty() {
            lacking.push("nothing that would say is there".to_owned());
        }
        Self::NoTargets {
            lacking,
            remedy: if read.is_some() {
                "complete it, or "
            } else {
                "give the join configuration with --join-config FILE, or "
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_source_lacks_is_said() {
        let hints = Hints {
            join_config: Some("/tmp/join.yaml".into()),
            kubeconfig: None,
        };
        let found = Discovery {
            absent: vec!["/etc/kubernetes/admin.conf".into()],
            ..Discovery::default()
        };
        let warned = [Finding::plain(
            "etcd-srv",
            FindingState::Warn,
            "`example` has no SRV records",
        )];
        let text = PlanError::no_targets(&hints, &found, &warned).to_string();
        for part in [
            "/tmp/join.yaml names neither an API server",
            "`example` has no SRV records",
            "/etc/kubernetes/admin.conf not there",
            "complete it, or name",
        ] {
            assert!(text.contains(part), "{text} lacks {part}");
        }
        assert!(!text.contains("--join-config"), "{text}");
        let text = PlanError::no_targets(&Hints::default(), &found, &[]).to_string();
        assert!(text.contains("--join-config FILE, or name"), "{text}");
    }
}
