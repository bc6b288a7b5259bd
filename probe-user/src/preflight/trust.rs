//! Loads the trust and credentials that the configuration names.

use std::sync::Arc;

use crate::config::Credentials;
use crate::target::Role;
use crate::tls::{CaBundle, ClientIdentity, ClientTls, CredentialError};

/// Whom to trust, and what to show, by role.
pub(super) struct Trust {
    etcd: ClientTls,
    apiserver: ClientTls,
}

impl Trust {
    /// Reads the files.
    pub(super) fn load(credentials: &Credentials) -> Result<Self, CredentialError> {
        let ca = |path: &Option<_>| -> Result<Option<Arc<CaBundle>>, CredentialError> {
            path.as_ref()
                .map(|path: &std::path::PathBuf| CaBundle::load(path))
                .transpose()
        };
        let identity = credentials
            .etcd_client
            .as_ref()
            .map(|(certificate, key)| ClientIdentity::load(certificate, key))
            .transpose()?;
        if let Some(identity) = &identity
            && identity.key_open_to_others()
        {
            log::warn!(
                "the key of {} may be read by other users; chmod 600 it",
                identity.certificate_path().display()
            );
        }
        Ok(Self {
            etcd: ClientTls::new(ca(&credentials.etcd_ca)?, identity),
            apiserver: ClientTls::new(ca(&credentials.apiserver_ca)?, None),
        })
    }

    /// What connections to `role` trust and show.
    pub(super) fn of(&self, role: Role) -> &ClientTls {
        match role {
            Role::EtcdClient | Role::EtcdPeer => &self.etcd,
            Role::ApiServer => &self.apiserver,
        }
    }
}
