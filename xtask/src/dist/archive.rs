//! The tarball: sorted, with one time and no owner, so that the same files make the same bytes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use ring::digest::{SHA256, digest};

use crate::workspace::finish;

/// Packs a folder with GNU tar and gzip, whose header gets neither name nor time.
pub(super) fn pack(folder: &Path, tarball: &Path, timestamp: u64) -> Result<()> {
    let parent = folder.parent().context("the top of the file system")?;
    let name = folder.file_name().context("no name")?;
    finish(
        Command::new("tar")
            .args(["--create", "--format=ustar", "--sort=name"])
            .args(["--owner=0", "--group=0", "--numeric-owner"])
            .arg("--mode=u=rwX,go=rX")
            .arg(format!("--mtime=@{timestamp}"))
            .arg("--use-compress-program=gzip --no-name --best")
            .arg("--file")
            .arg(tarball)
            .arg("--directory")
            .arg(parent)
            .arg(name),
    )
}

/// Writes the checksum file that `sha256sum --check` reads, beside the tarball.
pub(super) fn checksum(tarball: &Path) -> Result<PathBuf> {
    let digest = digest(&SHA256, &fs::read(tarball)?);
    let hex: Vec<String> = digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let name = tarball.file_name().context("no name")?.to_string_lossy();
    let path = PathBuf::from(format!("{}.sha256", tarball.display()));
    fs::write(&path, format!("{}  {name}\n", hex.concat()))?;
    Ok(path)
}
