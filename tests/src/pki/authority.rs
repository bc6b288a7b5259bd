//! A certificate authority and what it signs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use time::{Duration, OffsetDateTime};

/// A certificate file and the file of its key, both PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The certificate.
    pub cert: PathBuf,
    /// Its key, PKCS #8, mode 0600.
    pub key: PathBuf,
}

/// What a certificate may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// TLS server.
    Server,
    /// TLS client.
    Client,
    /// Both, as etcd's server and peer certificates of kubeadm.
    Both,
}

/// When a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// From an hour ago for a year, as kubeadm's.
    Now,
    /// Ended yesterday.
    Expired,
    /// Begins tomorrow.
    NotYet,
}

/// A certificate to be signed.
#[derive(Debug, Clone)]
pub struct Leaf<'a> {
    /// Subject CN.
    pub common_name: &'a str,
    /// Subject O.
    pub organisation: Option<&'a str>,
    /// Host names and addresses it is valid for.
    pub names: Vec<String>,
    /// What it may be used for.
    pub usage: Usage,
    /// When.
    pub validity: Validity,
}

/// A certificate authority. Keys are ECDSA P-256.
#[derive(Debug)]
pub struct Authority {
    /// Its own files.
    pub pair: Pair,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes an authority and writes `ca.crt` and `ca.key` into the folder, which is made too.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn create(folder: &Path, common_name: &str) -> Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name = subject(common_name, None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyEncipherment,
            KeyUsagePurpose::KeyCertSign,
        ];
        set_validity(&mut params, Validity::Now);
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        let pair = write_pair(folder, "ca", &certificate.pem(), &key)?;
        Ok(Self {
            pair,
            issuer: Issuer::new(params, key),
        })
    }

    /// Signs a certificate with a new key and writes `name.crt` and `name.key` into the folder.
    ///
    /// # Errors
    /// When a name is no valid host name, or the folder cannot be written.
    pub fn issue(&self, folder: &Path, name: &str, leaf: &Leaf<'_>) -> Result<Pair> {
        let mut params = CertificateParams::new(leaf.names.clone())?;
        params.distinguished_name = subject(leaf.common_name, leaf.organisation);
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyEncipherment,
        ];
        params.extended_key_usages = match leaf.usage {
            Usage::Server => vec![ExtendedKeyUsagePurpose::ServerAuth],
            Usage::Client => vec![ExtendedKeyUsagePurpose::ClientAuth],
            Usage::Both => vec![
                ExtendedKeyUsagePurpose::ServerAuth,
                ExtendedKeyUsagePurpose::ClientAuth,
            ],
        };
        params.use_authority_key_identifier_extension = true;
        set_validity(&mut params, leaf.validity);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        write_pair(folder, name, &certificate.pem(), &key)
    }
}

fn subject(common_name: &str, organisation: Option<&str>) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    if let Some(organisation) = organisation {
        subject.push(DnType::OrganizationName, organisation);
    }
    subject.push(DnType::CommonName, common_name);
    subject
}

fn set_validity(params: &mut CertificateParams, validity: Validity) {
    let now = OffsetDateTime::now_utc();
    (params.not_before, params.not_after) = match validity {
        Validity::Now => (now - Duration::HOUR, now + Duration::days(365)),
        Validity::Expired => (now - Duration::days(366), now - Duration::DAY),
        Validity::NotYet => (now + Duration::DAY, now + Duration::days(366)),
    };
}

fn write_pair(folder: &Path, name: &str, certificate: &str, key: &KeyPair) -> Result<Pair> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let pair = Pair {
        cert: folder.join(format!("{name}.crt")),
        key: folder.join(format!("{name}.key")),
    };
    fs::write(&pair.cert, certificate)
        .with_context(|| format!("cannot write {}", pair.cert.display()))?;
    fs::write(&pair.key, key.serialize_pem())
        .with_context(|| format!("cannot write {}", pair.key.display()))?;
    fs::set_permissions(&pair.key, fs::Permissions::from_mode(0o600))?;
    Ok(pair)
}
