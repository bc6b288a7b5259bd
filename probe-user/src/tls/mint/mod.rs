//! A client certificate that lives for minutes and only in memory.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData,
};
use rustls::SignatureScheme;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::SigningKey;
use time::{Duration, OffsetDateTime};
use x509_parser::prelude::{FromDer, X509Certificate};
use zeroize::Zeroize;

use crate::tls::error::{CredentialError, Material, unusable};
use crate::tls::file;
use crate::tls::identity::ClientIdentity;
use crate::tls::key::signing_key;

/// How long a minted certificate is valid.
pub const MINTED_VALIDITY: std::time::Duration = std::time::Duration::from_mins(5);

/// How far its start lies in the past, for servers whose clock is a little behind this one.
pub const MINTED_BACKDATING: std::time::Duration = std::time::Duration::from_mins(1);

/// Whom a minted certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Common name: the user, as etcd and the API server see it.
    pub common_name: &'static str,
    /// Organisation: the group, as the API server sees it.
    pub organisation: &'static str,
}

/// Signs a client certificate with a CA's key. Nothing is written; the new key is made here and wiped with the
/// identity.
///
/// # Errors
/// The CA's files cannot be read, are not what they should be, or do not belong together.
pub fn mint(
    ca_certificate: &Path,
    ca_key: &Path,
    subject: Subject,
) -> Result<Arc<ClientIdentity>, CredentialError> {
    let refuse = |reason: &str| {
        unusable(
            Material::SignerCertificate,
            ca_certificate,
            reason,
            "copy it again from a control-plane node",
        )
    };
    let pem = file::read(Material::SignerCertificate, ca_certificate)?.bytes;
    let der =
        CertificateDer::from_pem_slice(&pem).map_err(|_| refuse("it holds no certificate"))?;
    let signer = Signer::load(&der, ca_certificate, ca_key)?;
    let issuer =
        Issuer::from_ca_cert_der(&der, signer).map_err(|_| refuse("its certificate is damaged"))?;
    let unsigned = |_| {
        unusable(
            Material::SignerKey,
            ca_key,
            "it could not sign",
            "check it with `openssl pkey -check`",
        )
    };
    let mut key = KeyPair::generate().map_err(unsigned)?;
    let certificate = params(subject).signed_by(&key, &issuer).map_err(unsigned)?;
    let mut private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let identity = ClientIdentity::minted(&minted_path(ca_key), certificate.der(), &private);
    private.zeroize();
    key.zeroize();
    identity
}

/// What messages call a certificate that has no file.
fn minted_path(ca_key: &Path) -> PathBuf {
    PathBuf::from(format!("minted from {}", ca_key.display()))
}

fn params(subject: Subject) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::OrganizationName, subject.organisation);
    params
        .distinguished_name
        .push(DnType::CommonName, subject.common_name);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = true;
    let now = OffsetDateTime::now_utc();
    let seconds = |span: std::time::Duration| {
        Duration::seconds(i64::try_from(span.as_secs()).unwrap_or_default())
    };
    params.not_before = now - seconds(MINTED_BACKDATING);
    params.not_after = now + seconds(MINTED_VALIDITY);
    params
}

/// A CA's key as rcgen signs with it. rustls reads PKCS#1, the form kubeadm writes, which rcgen on ring does not.
struct Signer {
    key: Arc<dyn SigningKey>,
    scheme: SignatureScheme,
    algorithm: &'static rcgen::SignatureAlgorithm,
    public: Vec<u8>,
}

impl Signer {
    fn load(
        certificate: &CertificateDer<'_>,
        certificate_path: &Path,
        path: &Path,
    ) -> Result<Self, CredentialError> {
        let refuse = |reason: String, remedy| unusable(Material::SignerKey, path, reason, remedy);
        let pem = file::read(Material::SignerKey, path)?.bytes;
        let key = signing_key(Material::SignerKey, path, &pem)?;
        let Ok((_, parsed)) = X509Certificate::from_der(certificate) else {
            return Err(unusable(
                Material::SignerCertificate,
                certificate_path,
                "its certificate is damaged",
                "copy it again from a control-plane node",
            ));
        };
        let info = parsed.public_key();
        if key
            .public_key()
            .is_some_and(|public| public.as_ref() != info.raw)
        {
            return Err(refuse(
                format!(
                    "it does not belong to {}: their public keys differ",
                    certificate_path.display()
                ),
                "copy both again from the same control-plane node",
            ));
        }
        let schemes = [
            (SignatureScheme::RSA_PKCS1_SHA256, &rcgen::PKCS_RSA_SHA256),
            (
                SignatureScheme::ECDSA_NISTP256_SHA256,
                &rcgen::PKCS_ECDSA_P256_SHA256,
            ),
            (
                SignatureScheme::ECDSA_NISTP384_SHA384,
                &rcgen::PKCS_ECDSA_P384_SHA384,
            ),
            (SignatureScheme::ED25519, &rcgen::PKCS_ED25519),
        ];
        let chosen = schemes
            .into_iter()
            .find(|(scheme, _)| key.choose_scheme(&[*scheme]).is_some());
        let Some((scheme, algorithm)) = chosen else {
            return Err(refuse(
                "it is of a kind that is not supported".to_owned(),
                "use RSA (2048 bits or more), ECDSA P-256 or P-384, or Ed25519",
            ));
        };
        Ok(Self {
            key,
            scheme,
            algorithm,
            public: info.subject_public_key.data.to_vec(),
        })
    }
}

impl PublicKeyData for Signer {
    fn der_bytes(&self) -> &[u8] {
        &self.public
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        self.algorithm
    }
}

impl rcgen::SigningKey for Signer {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        self.key
            .choose_scheme(&[self.scheme])
            .and_then(|signer| signer.sign(message).ok())
            .ok_or(rcgen::Error::RemoteKeyError)
    }
}
