//! Verifies a server, and keeps what it showed.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

use super::config::provider;

/// Verifies against a CA where one is known and accepts anything where none is. Either way it keeps the server's
/// certificate, which rustls forgets when it refuses it, and the message should say what was refused.
#[derive(Debug)]
pub(crate) struct RecordingVerifier {
    trust: Option<Arc<WebPkiServerVerifier>>,
    seen: Mutex<Option<CertificateDer<'static>>>,
}

impl RecordingVerifier {
    pub(super) fn new(trust: Option<Arc<WebPkiServerVerifier>>) -> Self {
        Self {
            trust,
            seen: Mutex::new(None),
        }
    }

    /// The certificate the server showed for itself.
    pub(crate) fn seen(&self) -> Option<CertificateDer<'static>> {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl ServerCertVerifier for RecordingVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(end_entity.clone().into_owned());
        match &self.trust {
            Some(trust) => {
                trust.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            }
            None => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match &self.trust {
            Some(trust) => trust.verify_tls12_signature(message, certificate, signature),
            None => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match &self.trust {
            Some(trust) => trust.verify_tls13_signature(message, certificate, signature),
            None => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}
