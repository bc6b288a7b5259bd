//! CA bundles.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::config::provider;
use super::error::{CredentialError, Material, unusable};
use super::facts::CertificateFacts;
use super::file;

/// The certificate authorities a server is verified against.
#[derive(Debug)]
pub struct CaBundle {
    path: PathBuf,
    certificates: Vec<CertificateDer<'static>>,
    facts: Vec<CertificateFacts>,
    verifier: Arc<WebPkiServerVerifier>,
}

impl CaBundle {
    /// Loads every certificate of a PEM file.
    ///
    /// # Errors
    /// The file cannot be read, holds no certificate, or holds one that cannot be parsed.
    pub fn load(path: &Path) -> Result<Arc<Self>, CredentialError> {
        let contents = file::read(Material::CaBundle, path)?;
        Self::parse(path, &contents.bytes)
    }

    /// Takes every certificate of PEM text; `path` is where it came from, for messages.
    ///
    /// # Errors
    /// The text holds no certificate, or one that cannot be parsed.
    pub fn parse(path: &Path, pem: &[u8]) -> Result<Arc<Self>, CredentialError> {
        let mut certificates = Vec::new();
        for (index, der) in CertificateDer::pem_slice_iter(pem).enumerate() {
            let number = index + 1;
            certificates.push(
                der.map_err(|_| refuse(path, format!("certificate {number} is damaged PEM")))?,
            );
        }
        Self::of(path, certificates)
    }

    /// Trusts these certificates; `path` is where they came from, for messages.
    ///
    /// # Errors
    /// There is none, or one cannot be parsed.
    pub fn of(
        path: &Path,
        certificates: Vec<CertificateDer<'static>>,
    ) -> Result<Arc<Self>, CredentialError> {
        let mut roots = RootCertStore::empty();
        let mut facts = Vec::new();
        for (index, der) in certificates.iter().enumerate() {
            let number = index + 1;
            let read = CertificateFacts::read(der)
                .ok_or_else(|| refuse(path, format!("certificate {number} is damaged")))?;
            roots.add(der.clone()).map_err(|error| {
                refuse(path, format!("certificate {number} is refused: {error}"))
            })?;
            facts.push(read);
        }
        if facts.is_empty() {
            return Err(refuse(path, "it holds no certificate".to_owned()));
        }
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
            .build()
            .map_err(|error| refuse(path, error.to_string()))?;
        Ok(Arc::new(Self {
            path: path.to_owned(),
            certificates,
            facts,
            verifier,
        }))
    }

    /// Where it came from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The certificates, in the file's order.
    #[must_use]
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.certificates
    }

    /// What each certificate says, in the file's order. Verification does not look at a CA's own dates; etcd and
    /// kubeadm do.
    #[must_use]
    pub fn facts(&self) -> &[CertificateFacts] {
        &self.facts
    }

    pub(super) fn verifier(&self) -> Arc<WebPkiServerVerifier> {
        Arc::clone(&self.verifier)
    }
}

fn refuse(path: &Path, reason: String) -> CredentialError {
    const REMEDY: &str = "give the PEM certificate of the CA that signed the server";
    unusable(Material::CaBundle, path, reason, REMEDY)
}
