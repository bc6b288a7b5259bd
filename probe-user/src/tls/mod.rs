//! Credentials and trust: what is loaded from PEM files, what a certificate says, and how a session is set up.
//!
//! Everything runs on one cryptography provider (ring) that is passed explicitly, never through rustls' process-wide
//! default, whose absence is a panic.

mod ca;
mod config;
mod date;
mod error;
mod facts;
mod file;
mod identity;
mod key;
mod mint;
mod verifier;

pub use ca::CaBundle;
pub use config::ClientTls;
pub(crate) use config::Session;
pub(crate) use date::utc;
pub use error::{CredentialError, Material};
pub use facts::{CertificateFacts, EXPIRES_SOON, Validity};
pub use identity::ClientIdentity;
pub use mint::{MINTED_BACKDATING, MINTED_VALIDITY, Subject, mint};
