//! Which library source a compiler was given: its version alone does not tell.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use ring::digest::{Context, SHA256};

use super::{provenance, source};

/// Crates of the library that end up in the object.
const CRATES: [&str; 2] = ["core", "compiler-builtins"];

/// Hashes the Rust files of those crates.
pub(super) fn hash(library: &Path) -> Result<String> {
    let mut hasher = Context::new(&SHA256);
    for file in source::rust_files(&CRATES.map(|name| library.join(name)))? {
        let name = file.strip_prefix(library).unwrap_or(&file);
        let content = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        source::add(&mut hasher, name.to_string_lossy().as_bytes(), &content);
    }
    Ok(provenance::hex(hasher.finish().as_ref()))
}
