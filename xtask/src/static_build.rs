//! Builds joinprobe as one static program, which runs on any Linux of its architecture.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::workspace::{cargo, finish, target};

/// What rustc is told, separated as `CARGO_ENCODED_RUSTFLAGS` has it: glibc's own static start-up code and library, which
/// the packages that any C compiler needs bring; and random numbers by the system call. Otherwise the crate getrandom
/// looks the call up in a dynamic library, finds none, and wants /dev/urandom, which an empty chroot does not have.
const FLAGS: &str = "-Ctarget-feature=+crt-static\x1f--cfg=getrandom_backend=\"linux_getrandom\"";

/// The triple that static programs are built for: this machine's architecture, with glibc.
pub(crate) fn triple() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// Builds a static joinprobe in a profile of the workspace (`release`, `dev`, …) and returns where it is.
///
/// # Errors
/// When it does not build.
pub(crate) fn joinprobe(profile: &str) -> Result<PathBuf> {
    let triple = triple();
    // With a target named, cargo keeps these flags from build scripts and macros, which cannot be linked statically.
    finish(
        cargo("build")?
            .args(["--package", "probe-user", "--bin", "joinprobe"])
            .args(["--target", &triple, "--profile", profile])
            .env_remove("RUSTFLAGS")
            .env("CARGO_ENCODED_RUSTFLAGS", FLAGS),
    )
    .context("cannot build a static joinprobe")?;
    Ok(target()
        .join(triple)
        .join(folder(profile))
        .join("joinprobe"))
}

/// The folder into which cargo puts what it builds in a profile.
fn folder(profile: &str) -> &str {
    match profile {
        "dev" | "test" => "debug",
        "bench" => "release",
        other => other,
    }
}
