//! Credentials and trust.
