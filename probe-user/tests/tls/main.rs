//! Loading credentials.

mod files;
mod memory;
mod refused;
mod usable;
