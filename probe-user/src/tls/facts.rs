//! What a certificate says about itself.

use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::date::utc;

/// A certificate that ends within this time deserves a word: the warning time of Kubernetes' own
/// `KubeClientCertificateExpiration` alert.
pub const EXPIRES_SOON: Duration = Duration::from_hours(7 * 24);

/// What a certificate says about itself; nothing in it is secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFacts {
    /// Distinguished name of the holder.
    pub subject: String,
    /// Distinguished name of the issuer.
    pub issuer: String,
    /// Subject alternative names: host names and addresses.
    pub names: Vec<String>,
    /// Start of validity, seconds since 1970.
    pub not_before: i64,
    /// End of validity, seconds since 1970.
    pub not_after: i64,
    /// Whether it may sign other certificates (basic constraints).
    pub is_ca: bool,
    /// Whether the extended key usage allows a client; `true` where it is absent, which allows everything.
    pub allows_client: bool,
}

/// Whether a certificate can be used now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// It can.
    Valid,
    /// It can, but ends within [`EXPIRES_SOON`].
    ExpiresSoon,
    /// It ended.
    Expired,
    /// It has not begun: a clock is wrong, here or where it was issued.
    NotYetValid,
}

impl CertificateFacts {
    /// Reads a DER certificate; `None` when it cannot be parsed.
    pub(crate) fn read(der: &CertificateDer<'_>) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let usage = certificate.extended_key_usage().ok().flatten();
        Some(Self {
            subject: certificate.subject().to_string(),
            issuer: certificate.issuer().to_string(),
            names: names(&certificate),
            not_before: certificate.validity().not_before.timestamp(),
            not_after: certificate.validity().not_after.timestamp(),
            is_ca: certificate.is_ca(),
            allows_client: usage.is_none_or(|usage| usage.value.any || usage.value.client_auth),
        })
    }

    /// Whether it can be used at `now`.
    #[must_use]
    pub fn validity(&self, now: SystemTime) -> Validity {
        let now = now.duration_since(UNIX_EPOCH).map_or(0, |since| {
            i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
        });
        let soon = i64::try_from(EXPIRES_SOON.as_secs()).unwrap_or(0);
        if now < self.not_before {
            Validity::NotYetValid
        } else if now > self.not_after {
            Validity::Expired
        } else if self.not_after.saturating_sub(now) < soon {
            Validity::ExpiresSoon
        } else {
            Validity::Valid
        }
    }

    /// `2026-12-01T20:00:00Z to 2027-12-01T20:00:00Z`.
    #[must_use]
    pub fn period(&self) -> String {
        format!("{} to {}", utc(self.not_before), utc(self.not_after))
    }
}

fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    extension
        .value
        .general_names
        .iter()
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            GeneralName::IPAddress(octets) => address(octets).map(|address| address.to_string()),
            _ => None,
        })
        .collect()
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(octets)
        .map(IpAddr::from)
        .or_else(|_| <[u8; 16]>::try_from(octets).map(IpAddr::from))
        .ok()
}
