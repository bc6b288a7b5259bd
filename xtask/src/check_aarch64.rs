//! `cargo xtask check-aarch64`: whether joinprobe builds for 64-bit ARM, asked on any machine.
//!
//! Debian has the standard library of its rustc-web for other architectures, so neither rustup's targets nor an ARM
//! machine are needed. Compiler and library are unpacked; only the C cross compiler, for ring, is installed.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;

use crate::apt::PrivateApt;
use crate::build_ebpf;
use crate::packages;
use crate::workspace::{cargo, finish, say, target};

/// Triple of the target.
const TRIPLE: &str = "aarch64-unknown-linux-gnu";
/// Debian's name for the architecture.
const ARCHITECTURE: &str = "arm64";
/// C compiler for ring's C and assembly, and the headers it includes; each by a file that tells whether it is there.
const CROSS_PACKAGES: [(&str, &str); 2] = [
    ("/usr/bin/aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
    (
        "/usr/aarch64-linux-gnu/include/stdint.h",
        "libc6-dev-arm64-cross",
    ),
];

/// Checks that joinprobe compiles for aarch64.
///
/// Takes Debian's rustc-web with its standard library for arm64, which are unpacked under target/, and the packages
/// gcc-aarch64-linux-gnu and libc6-dev-arm64-cross, which are installed where they are missing.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
///
/// # Errors
/// It does not compile, or what it needs cannot be had.
pub(crate) fn run(_args: &Args) -> Result<ExitCode> {
    check()?;
    Ok(ExitCode::SUCCESS)
}

/// Checks that joinprobe compiles for aarch64.
///
/// # Errors
/// It does not, or what it needs cannot be had.
pub(crate) fn check() -> Result<()> {
    let began = Instant::now();
    let compiler = build_ebpf::rustc_web()?;
    provide_library(&build_ebpf::toolchain_folder())?;
    for (file, package) in CROSS_PACKAGES {
        if !Path::new(file).exists() {
            say(&format!("installing package {package}"));
            packages::install_packages(&[package])?;
        }
    }
    let mut check = cargo("check")?;
    check
        .args(["--package", "probe-user", "--lib", "--bins", "--locked"])
        .args(["--target", TRIPLE, "--target-dir"])
        .arg(target().join("aarch64"))
        .env("RUSTC", &compiler.rustc)
        .env("LD_LIBRARY_PATH", &compiler.libraries)
        .env("CC_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-gcc")
        .env("RUSTFLAGS", "--deny warnings");
    for variable in [
        "RUSTC_WRAPPER",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_TARGET_DIR",
    ] {
        check.env_remove(variable);
    }
    finish(&mut check)?;
    say(&format!(
        "joinprobe compiles for {TRIPLE} with {}, {} s",
        compiler.version,
        began.elapsed().as_secs()
    ));
    Ok(())
}

/// Unpacks the target's standard library beside the compiler it belongs to.
fn provide_library(folder: &Path) -> Result<()> {
    if folder.join("usr/lib/rustlib").join(TRIPLE).is_dir() {
        return Ok(());
    }
    let apt = PrivateApt::for_architecture(&folder.join("apt"), ARCHITECTURE)?;
    let development = format!("libstd-rust-web-dev:{ARCHITECTURE}");
    say(&format!(
        "downloading {development} (34 MB) and unpacking it into {}; nothing is installed",
        folder.display()
    ));
    apt.unpack(&[development], folder)?;
    apt.forget()
}
