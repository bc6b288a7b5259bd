//! Reads credential files: bounded, regular files only, and wiped from memory afterwards.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use zeroize::Zeroizing;

use super::error::{CredentialError, Material, unusable};

/// Largest credential file that is read. The largest public CA bundles are about 250 KB.
const MAX_BYTES: u64 = 1024 * 1024;

/// U+FEFF in UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Permission bits of anyone but the owner and the group.
const OTHERS: u32 = 0o007;

/// A file's contents and who may see them.
pub(super) struct Contents {
    pub(super) bytes: Zeroizing<Vec<u8>>,
    pub(super) open_to_others: bool,
}

/// Reads a PEM file.
///
/// # Errors
/// The file is missing, unreadable, not a regular file, empty, too large, or not PEM.
pub(super) fn read(material: Material, path: &Path) -> Result<Contents, CredentialError> {
    let unreadable = |source| CredentialError::Unreadable {
        material,
        path: path.to_owned(),
        source,
    };
    // Opening a FIFO would wait for its writer; without blocking it is opened, recognised and refused.
    let file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    let refuse = |reason, remedy| Err(unusable(material, path, reason, remedy));
    if metadata.is_dir() {
        return refuse("it is a directory", "name the PEM file in it");
    }
    if !metadata.is_file() {
        return refuse("it is not a regular file", "name a PEM file");
    }
    let mut bytes = bounded(file).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return refuse("it is larger than 1 MiB", "name a PEM file");
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return refuse("it is UTF-16, not PEM", "save it as UTF-8");
    }
    // What editors put before the text would hide the first BEGIN line.
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    if bytes.trim_ascii().is_empty() {
        return refuse("it is empty", "check what should have written it");
    }
    if !contains(&bytes, b"-----BEGIN ") {
        // 0x30 opens every DER certificate and key: an ASN.1 SEQUENCE.
        return if bytes.first() == Some(&0x30) && bytes.iter().any(|byte| !byte.is_ascii()) {
            refuse(
                "it is DER, not PEM",
                "convert it with openssl (-inform der -outform pem)",
            )
        } else {
            refuse("it is not PEM", "give a file that holds a BEGIN line")
        };
    }
    Ok(Contents {
        open_to_others: metadata.mode() & OTHERS != 0,
        bytes,
    })
}

/// Reads one byte more than is allowed, into a buffer that never moves: growing would leave copies of a key behind.
fn bounded(file: File) -> std::io::Result<Zeroizing<Vec<u8>>> {
    let length = file.metadata()?.len().min(MAX_BYTES);
    let mut bytes = Zeroizing::new(Vec::with_capacity(
        usize::try_from(length).unwrap_or(0).saturating_add(64),
    ));
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether `needle` occurs in `haystack`.
pub(super) fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack
        .windows(needle.len())
        .any(|window| window == needle)
}
