//! Whom to trust, and what to show, by target.

use crate::target::{Role, TargetSpec};
use crate::tls::ClientTls;

/// Whom to trust, and what to show, by target.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    pub(super) etcd: ClientTls,
    pub(super) apiserver: ClientTls,
}

impl Trust {
    /// What connections to this target trust and show.
    #[must_use]
    pub fn of(&self, spec: &TargetSpec) -> &ClientTls {
        match spec.role {
            Role::EtcdClient | Role::EtcdPeer => &self.etcd,
            Role::ApiServer => &self.apiserver,
        }
    }
}
