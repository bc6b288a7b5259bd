//! A client's certificate and key.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error as TlsError, InconsistentKeys};

use super::error::{CredentialError, Material, unusable};
use super::facts::CertificateFacts;
use super::file;
use super::key::signing_key;

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
        Self::load_parts((certificate, None), (key, None))
    }

    /// The same, where either may be at hand already: the path then only says where it came from.
    ///
    /// # Errors
    /// As for [`ClientIdentity::load`].
    pub fn load_parts(
        certificate: (&Path, Option<&[u8]>),
        key: (&Path, Option<&[u8]>),
    ) -> Result<Arc<Self>, CredentialError> {
        let (chain, facts) = match certificate {
            (path, Some(pem)) => parse_chain(path, pem)?,
            (path, None) => parse_chain(path, &file::read(Material::Certificate, path)?.bytes)?,
        };
        let (signing, key_open_to_others) = match key {
            (path, Some(pem)) => (signing_key(Material::Key, path, pem)?, false),
            (path, None) => {
                let contents = file::read(Material::Key, path)?;
                let signing = signing_key(Material::Key, path, &contents.bytes)?;
                (signing, contents.open_to_others)
            }
        };
        let certified = CertifiedKey::new(chain, signing);
        match certified.keys_match() {
            Ok(()) | Err(TlsError::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(TlsError::InconsistentKeys(_)) => {
                return Err(CredentialError::Mismatch {
                    certificate: certificate.0.to_owned(),
                    key: key.0.to_owned(),
                });
            }
            Err(_) => return Err(damaged(certificate.0)),
        }
        Ok(Arc::new(Self {
            certificate_path: certificate.0.to_owned(),
            facts,
            key_open_to_others,
            certified: Arc::new(certified),
        }))
    }

    /// A pair that was made here and has no files; `name` is what messages call it.
    pub(super) fn minted(
        name: &Path,
        certificate: &CertificateDer<'static>,
        key: &PrivateKeyDer<'static>,
    ) -> Result<Arc<Self>, CredentialError> {
        let facts = CertificateFacts::read(certificate).ok_or_else(|| damaged(name))?;
        let signing = any_supported_type(key).map_err(|_| damaged(name))?;
        Ok(Arc::new(Self {
            certificate_path: name.to_owned(),
            facts,
            key_open_to_others: false,
            certified: Arc::new(CertifiedKey::new(vec![certificate.clone()], signing)),
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
