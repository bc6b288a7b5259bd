//! TLS alerts in words.

use std::io;

use rustls::{AlertDescription, Error};

/// The rustls error inside an I/O error.
pub(super) fn tls_error(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

/// The alert an I/O error stands for.
pub(super) fn received(error: &io::Error) -> Option<AlertDescription> {
    match tls_error(error) {
        Some(Error::AlertReceived(alert)) => Some(*alert),
        _ => None,
    }
}

/// Whether a server sends this alert when the client's certificate, or its absence, is what it objects to. OpenSSL has
/// no alert of its own for a missing certificate in TLS 1.2 and sends `handshake_failure`.
pub(super) fn about_client(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::CertificateRequired
            | AlertDescription::NoCertificate
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
            | AlertDescription::DecryptError
            | AlertDescription::HandshakeFailure
    )
}

/// `BadCertificate` as `bad certificate`: RFC 8446's name with spaces.
pub(super) fn words(alert: AlertDescription) -> String {
    let name = alert
        .as_str()
        .map_or_else(|| format!("alert {}", u8::from(alert)), str::to_owned);
    let mut words = String::with_capacity(name.len() + 4);
    let mut previous_lower = false;
    for character in name.chars() {
        if character.is_uppercase() && previous_lower {
            words.push(' ');
        }
        previous_lower = character.is_lowercase();
        words.extend(character.to_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speaks_in_words() {
        for (alert, expected) in [
            (AlertDescription::BadCertificate, "bad certificate"),
            (AlertDescription::UnknownCA, "unknown ca"),
            (
                AlertDescription::CertificateRequired,
                "certificate required",
            ),
            (AlertDescription::from(201), "alert 201"),
        ] {
            assert_eq!(words(alert), expected);
        }
    }
}
