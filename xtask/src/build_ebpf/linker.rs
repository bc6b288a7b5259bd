//! Finds bpf-linker, or builds it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::toolchain;
use crate::workspace::{finish, output_of, say};

/// The version that fits the compilers this was tried with: it uses the compiler's own LLVM.
const VERSION: &str = "0.10.1";

/// A bpf-linker.
pub(super) struct Linker {
    /// The program.
    pub(super) program: PathBuf,
    /// `bpf-linker --version`.
    pub(super) version: String,
}

/// Finds bpf-linker on `PATH` or where an earlier run left it; else builds it with cargo.
pub(super) fn find() -> Result<Linker> {
    let own = toolchain::folder().join("bin/bpf-linker");
    for program in [own.clone(), PathBuf::from("bpf-linker")] {
        if let Ok(linker) = examine(program)
            && linker.version.ends_with(VERSION)
        {
            return Ok(linker);
        }
    }
    let root = toolchain::folder();
    say(&format!(
        "building bpf-linker {VERSION} with cargo install into {}",
        root.display()
    ));
    finish(
        Command::new("cargo")
            .args(["install", "--locked", "--root"])
            .arg(&root)
            .arg(format!("bpf-linker@{VERSION}")),
    )
    .context("cannot build bpf-linker")?;
    examine(own)
}

fn examine(program: PathBuf) -> Result<Linker> {
    let version = output_of(Command::new(&program).arg("--version"))?
        .trim()
        .to_owned();
    Ok(Linker { program, version })
}
