//! Verifies a server, and keeps what it showed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

use super::ca::CaBundle;
use super::config::provider;

/// Verifies against a CA where one is known and accepts anything where none is. Either way it keeps the server's
/// chain, which rustls forgets when it refuses it: the message should say what was refused, and a chain that could not
/// be judged at once may be judged later, when the CA is known.
#[derive(Debug)]
pub(crate) struct RecordingVerifier {
    trust: Option<Arc<WebPkiServerVerifier>>,
    seen: Mutex<Option<Chain>>,
    /// The server signed the handshake with the key of the certificate it showed.
    signed: AtomicBool,
}

#[derive(Debug)]
struct Chain {
    end_entity: CertificateDer<'static>,
    intermediates: Vec<CertificateDer<'static>>,
    name: ServerName<'static>,
}

impl RecordingVerifier {
    pub(super) fn new(trust: Option<Arc<WebPkiServerVerifier>>) -> Self {
        Self {
            trust,
            seen: Mutex::new(None),
            signed: AtomicBool::new(false),
        }
    }

    /// The certificate the server showed for itself.
    pub(crate) fn seen(&self) -> Option<CertificateDer<'static>> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.as_ref().map(|chain| chain.end_entity.clone())
    }

    /// Judges the chain of a finished handshake by a CA that was not known when it began. What was said over that
    /// connection is then as trustworthy as if it had been verified from the start: the handshake's signature was.
    ///
    /// # Errors
    /// rustls' reason to refuse the server.
    pub(crate) fn verify_by(&self, ca: &CaBundle) -> Result<(), Error> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(chain) = seen.as_ref() else {
            return Err(Error::NoCertificatesPresented);
        };
        if !self.signed.load(Ordering::Relaxed) {
            return Err(Error::InvalidCertificate(CertificateError::BadSignature));
        }
        ca.verifier()
            .verify_server_cert(
                &chain.end_entity,
                &chain.intermediates,
                &chain.name,
                &[],
                UnixTime::now(),
            )
            .map(|_| ())
    }

    /// Notes whether the handshake's signature holds. Without a CA a connection with a wrong one is still measured.
    fn signature(
        &self,
        verified: Result<HandshakeSignatureValid, Error>,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed.store(verified.is_ok(), Ordering::Relaxed);
        match &self.trust {
            Some(_) => verified,
            None => Ok(HandshakeSignatureValid::assertion()),
        }
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
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(Chain {
            end_entity: end_entity.clone().into_owned(),
            intermediates: intermediates
                .iter()
                .map(|certificate| certificate.clone().into_owned())
                .collect(),
            name: server_name.to_owned(),
        });
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
        let algorithms = provider().signature_verification_algorithms;
        self.signature(verify_tls12_signature(
            message,
            certificate,
            signature,
            &algorithms,
        ))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = provider().signature_verification_algorithms;
        self.signature(verify_tls13_signature(
            message,
            certificate,
            signature,
            &algorithms,
        ))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}
