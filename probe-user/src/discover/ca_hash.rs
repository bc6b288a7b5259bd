//! kubeadm's way to pin a CA: `sha256:` and the hash of its public key.

use std::fmt;
use std::str::FromStr;

use ring::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

/// SHA-256 over a certificate's SubjectPublicKeyInfo in DER, as in RFC 7469. Only the key is pinned: a CA renewed with
/// the same key keeps its hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CaHash([u8; 32]);

impl CaHash {
    /// The hash of a certificate's public key; `None` when it cannot be parsed.
    #[must_use]
    pub fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
        let digest = digest(&SHA256, certificate.public_key().raw);
        digest.as_ref().try_into().ok().map(Self)
    }

    /// Those of `certificates` whose hash is among `pins`.
    ///
    /// Only these are worth trusting: a server that cannot be verified yet may add a CA of its own beside the true one.
    #[must_use]
    pub fn matching<'a>(
        pins: &[Self],
        certificates: &[CertificateDer<'a>],
    ) -> Vec<CertificateDer<'a>> {
        certificates
            .iter()
            .filter(|certificate| Self::of(certificate).is_some_and(|hash| pins.contains(&hash)))
            .cloned()
            .collect()
    }
}

impl fmt::Display for CaHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for CaHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is no CA hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HashError {
    /// Another algorithm, or none.
    #[error("it does not begin with sha256:")]
    Algorithm,
    /// Not 64 hexadecimal digits.
    #[error("what follows sha256: is not 64 hexadecimal digits")]
    Digits,
}

impl FromStr for CaHash {
    type Err = HashError;

    fn from_str(text: &str) -> Result<Self, HashError> {
        let (algorithm, digits) = text.split_once(':').ok_or(HashError::Algorithm)?;
        if !algorithm.eq_ignore_ascii_case("sha256") {
            return Err(HashError::Algorithm);
        }
        let digits = digits.as_bytes();
        if digits.len() != 64 {
            return Err(HashError::Digits);
        }
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |index: usize| {
                pair.get(index)
                    .and_then(|digit| char::from(*digit).to_digit(16))
                    .and_then(|digit| u8::try_from(digit).ok())
                    .ok_or(HashError::Digits)
            };
            *byte = digit(0)? << 4 | digit(1)?;
        }
        Ok(Self(hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "sha256:d2cb7b0f9b6dd9a2cbbcbd4a16d8a3a0c6bb8ed6e2b3e5e3c7f3d9e50a13ab11";

    #[test]
    fn reads_and_writes_kubeadms_form() {
        assert_eq!(HASH.parse::<CaHash>().unwrap().to_string(), HASH);
        assert_eq!(
            HASH.to_uppercase().parse::<CaHash>().unwrap().to_string(),
            HASH
        );
    }

    #[test]
    fn refuses_other_texts() {
        for (text, error) in [
            ("", HashError::Algorithm),
            (&HASH[7..], HashError::Algorithm),
            ("sha1:da39a3ee", HashError::Algorithm),
            ("sha256:", HashError::Digits),
            (&HASH[..70], HashError::Digits),
            (&HASH.replace('d', "g"), HashError::Digits),
        ] {
            assert_eq!(text.parse::<CaHash>().unwrap_err(), error, "{text}");
        }
    }
}
