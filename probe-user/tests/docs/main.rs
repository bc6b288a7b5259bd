//! What the documentation tells people to type and to apply works.

mod blocks;
mod commands;
mod gate;
mod pod;
mod scripts;

use std::path::{Path, PathBuf};

/// The repository's top folder.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
