//! A client's certificate and key.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::sign::CertifiedKey;
use rustls::{Error as TlsError, InconsistentKeys};

use super::error::{CredentialError, Material, unusable};
use super::facts::CertificateFacts;
use super::file;
use super::key::SecretKey;

/// A client certificate with its private key. The key never shows in `Debug` or in a message.
pub struct ClientIdentity {
    certificate_path: PathBuf,
    facts: CertificateFacts,
    key_open_to_others: bool,
    certified: Arc<CertifiedKey>,
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientIdentity")
            .field("certificate_path", &self.certificate_path)
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}

impl ClientIdentity {
    /// Loads a PEM certificate, with the intermediates that follow it, and its PEM key (PKCS#8, PKCS#1 or SEC1).
    /// Both may be the same file.
    ///
    /// # Errors
    /// A file cannot be read, is not what it should be, the key is encrypted, or the two do not belong together.
    pub fn load(certificate: &Path, key: &Path) -> Result<Arc<Self>, CredentialError> {
        let chain = file::read(Material::Certificate, certificate)?;
        let contents = file::read(Material::Key, key)?;
        Self::parse(
            certificate,
            &chain.bytes,
            key,
            &contents.bytes,
            contents.open_to_others,
        )
    }

    fn parse(
        certificate: &Path,
        chain: &[u8],
        key: &Path,
        key_pem: &[u8],
        key_open_to_others: bool,
    ) -> Result<Arc<Self>, CredentialError> {
        let (chain, facts) = parse_chain(certificate, chain)?;
        let signing = any_supported_type(&SecretKey::find(key, key_pem)?.der()).map_err(|_| {
            unusable(
                Material::Key,
                key,
                "it is damaged or of a kind that is not supported",
                "use RSA (2048 bits or more), ECDSA P-256 or P-384, or Ed25519",
            )
        })?;
        let certified = CertifiedKey::new(chain, signing);
        match certified.keys_match() {
            Ok(()) | Err(TlsError::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(TlsError::InconsistentKeys(_)) => {
                return Err(CredentialError::Mismatch {
                    certificate: certificate.to_owned(),
                    key: key.to_owned(),
                });
            }
            Err(_) => return Err(damaged(certificate)),
        }
        Ok(Arc::new(Self {
            certificate_path: certificate.to_owned(),
            facts,
            key_open_to_others,
            certified: Arc::new(certified),
        }))
    }

    /// Where the certificate came from.
    #[must_use]
    pub fn certificate_path(&self) -> &Path {
        &self.certificate_path
    }

    /// What the certificate says.
    #[must_use]
    pub fn facts(&self) -> &CertificateFacts {
        &self.facts
    }

    /// Whether the key's file can be read or written by anyone on the host.
    #[must_use]
    pub fn key_open_to_others(&self) -> bool {
        self.key_open_to_others
    }

    pub(super) fn certified(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.certified)
    }
}

fn damaged(path: &Path) -> CredentialError {
    unusable(
        Material::Certificate,
        path,
        "a certificate in it is damaged",
        "issue or copy it again",
    )
}

fn parse_chain(
    path: &Path,
    pem: &[u8],
) -> Result<(Vec<CertificateDer<'static>>, CertificateFacts), CredentialError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|_| damaged(path))?;
    let Some(leaf) = chain.first() else {
        return Err(unusable(
            Material::Certificate,
            path,
            "it holds no certificate",
            "name the PEM file of the certificate, not of its key",
        ));
    };
    let facts = CertificateFacts::read(leaf).ok_or_else(|| damaged(path))?;
    if chain
        .iter()
        .any(|der| CertificateFacts::read(der).is_none())
    {
        return Err(damaged(path));
    }
    Ok((chain, facts))
}
