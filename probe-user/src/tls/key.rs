//! Takes a private key out of a PEM file, leaving no copy of it behind.
//!
//! rustls' own PEM reader gathers the text in a buffer that it frees as it is; a key must not stay in freed memory.

use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};
use rustls::sign::SigningKey;
use zeroize::Zeroizing;

use super::error::{CredentialError, Material, unusable};

/// Takes the key of a PEM file to sign with.
pub(super) fn signing_key(
    material: Material,
    path: &Path,
    pem: &[u8],
) -> Result<Arc<dyn SigningKey>, CredentialError> {
    any_supported_type(&SecretKey::find(material, path, pem)?.der()).map_err(|_| {
        unusable(
            material,
            path,
            "it is damaged or of a kind that is not supported",
            "use RSA (2048 bits or more), ECDSA P-256 or P-384, or Ed25519",
        )
    })
}

/// What a BEGIN line says the key is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// RFC 5208, any algorithm.
    Pkcs8,
    /// RFC 8017, RSA only.
    Pkcs1,
    /// RFC 5915, elliptic curves only.
    Sec1,
}

impl Form {
    const ALL: [(Self, &'static str); 3] = [
        (Self::Pkcs8, "PRIVATE KEY"),
        (Self::Pkcs1, "RSA PRIVATE KEY"),
        (Self::Sec1, "EC PRIVATE KEY"),
    ];

    fn of(label: &str) -> Option<Self> {
        let mut forms = Self::ALL.into_iter();
        forms.find(|(_, name)| *name == label).map(|(form, _)| form)
    }
}

/// A key in DER, wiped when dropped.
struct SecretKey {
    form: Form,
    der: Zeroizing<Vec<u8>>,
}

impl SecretKey {
    /// The key, borrowed: nothing is copied.
    fn der(&self) -> PrivateKeyDer<'_> {
        let der = self.der.as_slice();
        match self.form {
            Form::Pkcs8 => PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(der)),
            Form::Pkcs1 => PrivateKeyDer::Pkcs1(PrivatePkcs1KeyDer::from(der)),
            Form::Sec1 => PrivateKeyDer::Sec1(PrivateSec1KeyDer::from(der)),
        }
    }

    /// Finds the first private key of PEM text (RFC 7468).
    fn find(material: Material, path: &Path, pem: &[u8]) -> Result<Self, CredentialError> {
        let refuse = |reason: &str, remedy| unusable(material, path, reason, remedy);
        let damaged = || refuse("it is damaged PEM", "issue or copy it again");
        let encrypted = || {
            refuse(
                "the key is encrypted",
                "decrypt it first (openssl pkey -in FILE -out FILE)",
            )
        };
        let mut lines = pem.split(|byte| matches!(byte, b'\n' | b'\r'));
        let form = loop {
            let Some(line) = lines.next() else {
                return Err(refuse(
                    "it holds no private key",
                    "name the PEM file of the key, not of its certificate",
                ));
            };
            match label(line, "BEGIN") {
                Some("ENCRYPTED PRIVATE KEY") => return Err(encrypted()),
                Some(name) => {
                    if let Some(form) = Form::of(name) {
                        break form;
                    }
                }
                None if line.starts_with(b"-----BEGIN ") => return Err(damaged()),
                None => {}
            }
        };
        // Never grows, and so never moves.
        let mut text = Zeroizing::new(Vec::with_capacity(pem.len()));
        for line in lines {
            if line.starts_with(b"-----") {
                if label(line, "END").and_then(Form::of) != Some(form) {
                    break;
                }
                let mut der = Zeroizing::new(vec![0; text.len()]);
                let length = STANDARD
                    .decode_slice(&text, &mut der)
                    .map_err(|_| damaged())?;
                der.truncate(length);
                return Ok(Self { form, der });
            }
            // RFC 1421 headers, which only encrypted keys have.
            if line.starts_with(b"Proc-Type:") {
                return Err(encrypted());
            }
            text.extend(line.iter().filter(|byte| !byte.is_ascii_whitespace()));
        }
        Err(damaged())
    }
}

/// `PRIVATE KEY` of `-----BEGIN PRIVATE KEY-----`.
fn label<'a>(line: &'a [u8], word: &str) -> Option<&'a str> {
    let line = str::from_utf8(line).ok()?.trim_end();
    let rest = line.strip_prefix("-----")?.strip_suffix("-----")?;
    rest.strip_prefix(word)?.strip_prefix(' ')
}
