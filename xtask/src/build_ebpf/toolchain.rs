//! Finds a compiler that can make eBPF: one with the library source of exactly its own version.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{debian, output_of};
use crate::workspace::{self, say};

/// Environment variable that names a folder into which the packages of `debian` are unpacked.
const FOLDER_VARIABLE: &str = "JOINPROBE_EBPF_TOOLCHAIN";
/// Where they are unpacked otherwise, under the workspace.
const FOLDER: &str = "target/ebpf-toolchain";

/// A compiler that can make eBPF.
#[derive(Debug)]
pub(super) struct Toolchain {
    /// The compiler.
    pub(super) rustc: PathBuf,
    /// Folder of its shared libraries, where the system does not know it.
    pub(super) libraries: Option<PathBuf>,
    /// Folder of its library source.
    pub(super) library_source: PathBuf,
    /// First line of `rustc -vV`.
    pub(super) version: String,
    /// The LLVM it was built with.
    pub(super) llvm: String,
    /// What it is, for people.
    pub(super) origin: &'static str,
}

/// Where packages and programs of this build are kept.
pub(super) fn folder() -> PathBuf {
    std::env::var_os(FOLDER_VARIABLE).map_or_else(|| workspace::path(FOLDER), PathBuf::from)
}

/// Finds a toolchain, or gets one on Debian and Ubuntu.
///
/// In this order: the folder that the environment names, rustup's nightly with its `rust-src` component (or with
/// Debian's rust-src of the same version laid in its place), Debian's rustc-web as installed, the same as unpacked by an
/// earlier run, and at last downloaded.
pub(super) fn find() -> Result<Toolchain> {
    let mut reasons = Vec::new();
    let unpacked = folder();
    let candidates: [fn(&Path) -> Result<Toolchain>; 3] = if explicit() {
        [debian_folder, nightly, installed]
    } else {
        [nightly, installed, debian_folder]
    };
    for candidate in candidates {
        match candidate(&unpacked) {
            Ok(toolchain) => return Ok(toolchain),
            Err(reason) => reasons.push(format!("{reason:#}")),
        }
    }
    say(&format!(
        "no compiler with its library source is here:\n  {}",
        reasons.join("\n  ")
    ));
    debian::download(&unpacked).context(
        "cannot get a compiler; install one with `rustup toolchain install nightly --component rust-src`",
    )?;
    debian_folder(&unpacked)
}

fn explicit() -> bool {
    std::env::var_os(FOLDER_VARIABLE).is_some()
}

fn nightly(_unpacked: &Path) -> Result<Toolchain> {
    let rustc =
        output_of(Command::new("rustup").args(["which", "--toolchain", "nightly", "rustc"]))
            .context("rustup has no nightly")?;
    examine(PathBuf::from(rustc.trim()), None, "rustup's nightly")
}

fn installed(_unpacked: &Path) -> Result<Toolchain> {
    examine(PathBuf::from("/usr/bin/rustc"), None, "the system's")
}

fn debian_folder(unpacked: &Path) -> Result<Toolchain> {
    let libraries = debian::library_folder(unpacked)?;
    examine(
        unpacked.join("usr/bin/rustc"),
        Some(libraries),
        "Debian's rustc-web, unpacked",
    )
}

fn examine(rustc: PathBuf, libraries: Option<PathBuf>, origin: &'static str) -> Result<Toolchain> {
    ensure!(rustc.is_file(), "there is no {}", rustc.display());
    let ask = |args: &[&str]| {
        let mut command = Command::new(&rustc);
        command.args(args);
        if let Some(libraries) = &libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        output_of(&mut command)
    };
    let sysroot = ask(&["--print", "sysroot"])?;
    let library_source = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library");
    ensure!(
        library_source.join("core/Cargo.toml").is_file(),
        "{} has no library source at {}",
        rustc.display(),
        library_source.display()
    );
    let about = ask(&["-vV"])?;
    let llvm = about
        .lines()
        .find_map(|line| line.strip_prefix("LLVM version: "))
        .unwrap_or_default()
        .to_owned();
    let version = about.lines().next().unwrap_or_default().to_owned();
    Ok(Toolchain {
        rustc,
        libraries,
        library_source,
        version,
        llvm,
        origin,
    })
}
