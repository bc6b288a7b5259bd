//! Finds a compiler that can make eBPF: one with the library source of its own release.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::{debian, library, nightly};
use crate::workspace::{self, output_of, say};

/// Environment variable that names a folder into which packages are unpacked.
const FOLDER_VARIABLE: &str = "JOINPROBE_EBPF_TOOLCHAIN";
/// Where they are unpacked otherwise, under the workspace.
const FOLDER: &str = "target/ebpf-toolchain";

/// The ways to a compiler that can make eBPF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Way {
    /// rustup's nightly with its component rust-src
    Nightly,
    /// Debian's rustc-web, downloaded and unpacked where it is not there
    RustcWeb,
    /// rustup's nightly with Debian's rust-src of the same release, downloaded and unpacked where it is not there
    NightlyDebianSrc,
}

/// A compiler that can make eBPF.
#[derive(Debug)]
pub(crate) struct Toolchain {
    /// The compiler.
    pub(crate) rustc: PathBuf,
    /// Folder of its shared libraries: the linker looks there for the compiler's LLVM.
    pub(crate) libraries: PathBuf,
    /// Folder of its library source.
    pub(crate) library_source: PathBuf,
    /// See `library::hash`.
    pub(crate) library_sha256: String,
    /// First line of `rustc -vV`.
    pub(crate) version: String,
    /// The LLVM it was built with.
    pub(crate) llvm: String,
    /// What it is, for people.
    pub(crate) origin: &'static str,
}

/// Where packages and programs of this build are kept.
pub(crate) fn folder() -> PathBuf {
    std::env::var_os(FOLDER_VARIABLE).map_or_else(|| workspace::path(FOLDER), PathBuf::from)
}

/// Finds a toolchain of the wanted way, or gets it.
///
/// With no way named, in this order: what is unpacked in the folder that the environment names, rustup's nightly with its
/// library source, the system's compiler, what earlier runs unpacked, and at last rustc-web, downloaded.
pub(super) fn find(way: Option<Way>) -> Result<Toolchain> {
    let unpacked = folder();
    let candidates: &[fn(&Path) -> Result<Toolchain>] = match way {
        Some(Way::Nightly) => &[nightly],
        Some(Way::RustcWeb) => &[rustc_web],
        Some(Way::NightlyDebianSrc) => &[nightly_debian_src],
        None if std::env::var_os(FOLDER_VARIABLE).is_some() => {
            &[rustc_web, nightly_debian_src, nightly, installed]
        }
        None => &[nightly, installed, rustc_web, nightly_debian_src],
    };
    let mut reasons = Vec::new();
    for candidate in candidates {
        match candidate(&unpacked) {
            Ok(toolchain) => return Ok(toolchain),
            Err(reason) => reasons.push(format!("{reason:#}")),
        }
    }
    let reasons = reasons.join("\n  ");
    if way == Some(Way::Nightly) {
        bail!(
            "{reasons}; `rustup toolchain install nightly --component rust-src` gets both, or take another --toolchain"
        );
    }
    say(&format!(
        "no such compiler with its library source is here:\n  {reasons}"
    ));
    if way == Some(Way::NightlyDebianSrc) {
        let release = nightly::release()?;
        debian::download_source(&release, &nightly::source_folder(&unpacked))?;
        return nightly_debian_src(&unpacked);
    }
    debian::download_compiler(&unpacked).context(
        "cannot get a compiler; install one with `rustup toolchain install nightly --component rust-src`",
    )?;
    rustc_web(&unpacked)
}

fn nightly(_unpacked: &Path) -> Result<Toolchain> {
    let rustc = nightly::rustc()?;
    let libraries = nightly::libraries(&rustc)?;
    examine(rustc, libraries, "rustup's nightly")
}

fn nightly_debian_src(unpacked: &Path) -> Result<Toolchain> {
    let rustc = nightly::with_source_beside(unpacked)?;
    let libraries = nightly::libraries(&nightly::rustc()?)?;
    examine(
        rustc,
        libraries,
        "rustup's nightly with Debian's rust-src beside it",
    )
}

fn installed(_unpacked: &Path) -> Result<Toolchain> {
    let libraries = debian::library_folder(Path::new("/"))?;
    examine(PathBuf::from("/usr/bin/rustc"), libraries, "the system's")
}

fn rustc_web(unpacked: &Path) -> Result<Toolchain> {
    let libraries = debian::library_folder(unpacked)?;
    examine(
        unpacked.join("usr/bin/rustc"),
        libraries,
        "Debian's rustc-web, unpacked",
    )
}

fn examine(rustc: PathBuf, libraries: PathBuf, origin: &'static str) -> Result<Toolchain> {
    ensure!(rustc.is_file(), "there is no {}", rustc.display());
    let ask = |args: &[&str]| {
        output_of(
            Command::new(&rustc)
                .args(args)
                .env("LD_LIBRARY_PATH", &libraries),
        )
    };
    let sysroot = ask(&["--print", "sysroot"])?;
    let library_source = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library");
    ensure!(
        library_source.join("core/Cargo.toml").is_file(),
        "{} ({origin}) has no library source at {}",
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
        library_sha256: library::hash(&library_source)?,
        rustc,
        libraries,
        library_source,
        version,
        llvm,
        origin,
    })
}
