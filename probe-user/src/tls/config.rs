//! How a TLS session is set up: whom it trusts and what it shows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, Error, SignatureScheme};

use super::ca::CaBundle;
use super::identity::ClientIdentity;
use super::verifier::RecordingVerifier;

/// The one cryptography provider.
pub(super) fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    Arc::clone(PROVIDER.get_or_init(|| Arc::new(rustls::crypto::ring::default_provider())))
}

/// What a role's connections trust and show.
#[derive(Clone, Debug, Default)]
pub struct ClientTls {
    ca: Option<Arc<CaBundle>>,
    identity: Option<Arc<ClientIdentity>>,
    server_name: Option<String>,
}

impl ClientTls {
    /// Verifies servers against `ca`, or not at all without one; shows `identity`, but only where a server is verified.
    #[must_use]
    pub fn new(ca: Option<Arc<CaBundle>>, identity: Option<Arc<ClientIdentity>>) -> Self {
        Self {
            ca,
            identity,
            server_name: None,
        }
    }

    /// The same trust, showing `identity`.
    #[must_use]
    pub fn with_identity(&self, identity: Option<Arc<ClientIdentity>>) -> Self {
        Self {
            identity,
            ..self.clone()
        }
    }

    /// The same, for servers whose certificates show `name` instead of the host that is dialled.
    #[must_use]
    pub fn with_server_name(self, name: String) -> Self {
        Self {
            server_name: Some(name),
            ..self
        }
    }

    /// The name that certificates have to show, where it is not the host's.
    pub(crate) fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// The CA servers are verified against.
    #[must_use]
    pub fn ca(&self) -> Option<&CaBundle> {
        self.ca.as_deref()
    }

    /// The client certificate that was given, whether or not it may be shown.
    #[must_use]
    pub fn identity(&self) -> Option<&ClientIdentity> {
        self.identity.as_deref()
    }

    /// The client certificate, where there is a CA to verify the server with before it is shown.
    pub(crate) fn shown(&self) -> Option<&ClientIdentity> {
        self.ca.as_ref().and(self.identity.as_deref())
    }

    /// Sets up one session, TLS 1.2 or 1.3, which is never resumed.
    ///
    /// # Errors
    /// rustls finds the combination unusable; nothing a user can cause.
    pub(crate) fn session(&self, alpn: &[&[u8]]) -> Result<Session, Error> {
        let verifier = Arc::new(RecordingVerifier::new(
            self.ca.as_ref().map(|ca| ca.verifier()),
        ));
        let client = Arc::new(Shown {
            certified: self.shown().map(ClientIdentity::certified),
            asked: AtomicBool::new(false),
        });
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&verifier) as _)
            .with_client_cert_resolver(Arc::clone(&client) as _);
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        config.resumption = Resumption::disabled();
        Ok(Session {
            config: Arc::new(config),
            verifier,
            client,
        })
    }
}

/// One connection's configuration, and what was learned through it.
pub(crate) struct Session {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) verifier: Arc<RecordingVerifier>,
    client: Arc<Shown>,
}

impl Session {
    /// Whether the server asked for a client certificate.
    pub(crate) fn asked(&self) -> bool {
        self.client.asked.load(Ordering::Relaxed)
    }
}

/// Shows the one certificate, whichever issuers the server names: its alert is a clearer answer than our silence.
#[derive(Debug)]
struct Shown {
    certified: Option<Arc<CertifiedKey>>,
    asked: AtomicBool,
}

impl ResolvesClientCert for Shown {
    fn resolve(
        &self,
        _issuers: &[&[u8]],
        _schemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        self.asked.store(true, Ordering::Relaxed);
        self.certified.clone()
    }

    fn has_certs(&self) -> bool {
        self.certified.is_some()
    }
}
