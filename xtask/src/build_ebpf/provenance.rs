//! What made an object: the file beside it.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

const HEAD: &str = "\
# What made the object beside this file. Written by `cargo xtask build-ebpf`, checked by `cargo xtask build-ebpf --check`.
";

/// Compiler, its library source, linker and source of an object.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct Provenance {
    /// First line of `rustc -vV`.
    pub(super) compiler: String,
    /// See `library::hash`.
    #[serde(default)]
    pub(super) library_sha256: String,
    /// The compiler's LLVM.
    pub(super) llvm: String,
    /// `bpf-linker --version`.
    pub(super) linker: String,
    /// See `source::hash`.
    pub(super) source_sha256: String,
    /// Of the object's bytes.
    pub(super) object_sha256: String,
}

impl Provenance {
    /// Reads the file.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("cannot understand {}", path.display()))
    }

    /// Why another object's bytes may differ from this one's though the source is the same, in words.
    pub(super) fn difference_of_tools(&self, other: &Self) -> Option<String> {
        for (what, recorded, here) in [
            ("compiler", &self.compiler, &other.compiler),
            ("linker", &self.linker, &other.linker),
            (
                "compiler's library source",
                &self.library_sha256,
                &other.library_sha256,
            ),
        ] {
            if recorded != here {
                return Some(format!(
                    "the recorded {what} is {recorded}, the one here {here}"
                ));
            }
        }
        None
    }

    /// Writes the file.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let text = format!("{HEAD}{}", toml::to_string(self)?);
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// The SHA-256 of some bytes, in hexadecimal.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

/// Bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
