//! What must be true of a release.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use object::Endianness;
use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader as _, ProgramHeader as _};

use crate::workspace::{finish, target};

/// Fails if the program asks for a dynamic linker.
pub(super) fn is_static(binary: &Path) -> Result<()> {
    let bytes = std::fs::read(binary)?;
    let header = FileHeader64::<Endianness>::parse(&*bytes).context("not a 64-bit ELF program")?;
    let endian = header.endian()?;
    let dynamic = header
        .program_headers(endian, &*bytes)?
        .iter()
        .any(|segment| segment.p_type(endian) == PT_INTERP);
    ensure!(
        !dynamic,
        "{} is linked dynamically: let this task build it, or name a static one in JOINPROBE_BIN",
        binary.display()
    );
    Ok(())
}

/// Unpacks the tarball as a user would and runs its program.
pub(super) fn runs_alone(tarball: &Path, name: &str) -> Result<()> {
    let folder = target().join("dist-check");
    std::fs::create_dir_all(&folder)?;
    finish(
        Command::new("tar")
            .args(["--extract", "--file"])
            .arg(tarball)
            .arg("--directory")
            .arg(&folder),
    )?;
    let output = Command::new(folder.join(name).join("bin/joinprobe"))
        .arg("--version")
        .env_clear()
        .output()
        .context("the packed program does not start")?;
    let version = String::from_utf8_lossy(&output.stdout);
    let expected = format!("joinprobe {}", env!("CARGO_PKG_VERSION"));
    ensure!(
        output.status.success() && version.trim() == expected,
        "the packed program answers --version with `{}` instead of `{expected}`",
        version.trim()
    );
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
