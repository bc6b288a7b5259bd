//! Why credentials could not be loaded.

use std::fmt;
use std::path::{Path, PathBuf};

/// Which credential a file was meant to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Material {
    /// Certificates of one or more certificate authorities.
    CaBundle,
    /// The client's certificate, with intermediates where there are any.
    Certificate,
    /// The client's private key.
    Key,
    /// The certificate of a CA that is to sign a client certificate.
    SignerCertificate,
    /// The private key of that CA.
    SignerKey,
}

impl fmt::Display for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CaBundle => "CA bundle",
            Self::Certificate => "client certificate",
            Self::Key => "client key",
            Self::SignerCertificate => "CA certificate",
            Self::SignerKey => "CA key",
        })
    }
}

/// Why a credential was refused: one sentence with the file, the reason and the remedy. Never holds file contents.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// The file could not be opened or read.
    #[error("cannot read the {material} {path}: {source}; check the path and its permissions", path = .path.display())]
    Unreadable {
        /// What the file was meant to hold.
        material: Material,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file was read and is not what it should be.
    #[error("the {material} {path} cannot be used: {reason}; {remedy}", path = .path.display())]
    Unusable {
        /// What the file was meant to hold.
        material: Material,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// Certificate and key are each sound and do not belong together.
    #[error(
        "the client key {key} does not belong to the client certificate {certificate}: \
         their public keys differ; give the pair that was issued together",
        key = .key.display(), certificate = .certificate.display()
    )]
    Mismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
}

/// Shorthand for [`CredentialError::Unusable`].
pub(super) fn unusable(
    material: Material,
    path: &Path,
    reason: impl Into<String>,
    remedy: &'static str,
) -> CredentialError {
    CredentialError::Unusable {
        material,
        path: path.to_owned(),
        reason: reason.into(),
        remedy,
    }
}
