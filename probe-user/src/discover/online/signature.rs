//! The signature under cluster-info: a JWS with detached content (RFC 7515, appendix F), made with a bootstrap token.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use zeroize::Zeroizing;

use crate::discover::secret::BootstrapToken;

/// Whether the holder of `token` signed `content`. Done here; the token goes nowhere.
pub(super) fn is_valid(signature: &str, content: &str, token: &BootstrapToken) -> bool {
    let Some((header, signature)) = signature.split_once("..") else {
        return false;
    };
    // The one header that Kubernetes writes; a token's id needs no escaping.
    let expected = format!("{{\"alg\":\"HS256\",\"kid\":\"{}\"}}", token.id());
    if header != URL_SAFE_NO_PAD.encode(expected) {
        return false;
    }
    let Ok(signature) = URL_SAFE_NO_PAD.decode(signature) else {
        return false;
    };
    // HMAC pads keys with zeros itself, so that Kubernetes' own padding to 32 bytes changes nothing.
    let key = Zeroizing::new(token.secret().expose().as_bytes().to_vec());
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(content));
    hmac::verify(&key, signed.as_bytes(), &signature).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENT: &str = "apiVersion: v1\nkind: Config\n";
    /// Made by an independent implementation: Python's hmac and base64.
    const SIGNATURE: &str =
        "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9..vH_kT4yiol-nrAWgjfCYqvum5wsKETXe0S7OOp1VgnE";

    fn token(text: &str) -> BootstrapToken {
        BootstrapToken::parse(text).unwrap()
    }

    #[test]
    fn agrees_with_another_implementation() {
        let token = token("abcdef.0123456789abcdef");
        assert!(is_valid(SIGNATURE, CONTENT, &token));
        assert!(!is_valid(SIGNATURE, "another content", &token));
    }

    #[test]
    fn refuses_other_tokens_and_forms() {
        assert!(!is_valid(
            SIGNATURE,
            CONTENT,
            &token("abcdef.0123456789abcdeg")
        ));
        assert!(!is_valid(
            SIGNATURE,
            CONTENT,
            &token("abcdeg.0123456789abcdef")
        ));
        let right = token("abcdef.0123456789abcdef");
        for wrong in [
            "",
            "..",
            "a..b",
            &SIGNATURE.replace("..", "."),
            &SIGNATURE[..60],
        ] {
            assert!(!is_valid(wrong, CONTENT, &right), "{wrong}");
        }
    }
}
