//! `build-ebpf`: compiles probe-ebpf and writes the object that joinprobe embeds.
//!
//! The object is committed, so that building joinprobe takes nothing but stable Rust. `--check` says whether the
//! committed object comes from the committed source.

mod btf;
mod compile;
mod contents;
mod debian;
mod finish;
mod layout;
mod library;
mod linker;
mod nightly;
mod provenance;
mod source;
mod toolchain;

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};

use crate::workspace::{self, say};
use contents::Contents;
use provenance::Provenance;
use toolchain::{Toolchain, Way};

pub(crate) use toolchain::folder as toolchain_folder;

/// The committed object.
const OBJECT: &str = "probe-user/bpf/joinprobe.bpf.o";
/// What made it.
const PROVENANCE: &str = "probe-user/bpf/joinprobe.bpf.toml";

/// Compiles the kernel side and writes the object that joinprobe embeds.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Rebuild and fail if the committed object does not come from the committed source
    #[arg(long)]
    check: bool,
    /// Only compare the hashes of source and object with those recorded; needs no toolchain
    #[arg(long, conflicts_with = "check")]
    check_source: bool,
    /// Which compiler to take; the first that is there, when not given
    #[arg(long, value_name = "WAY", conflicts_with = "check_source")]
    toolchain: Option<Way>,
}

/// Runs the command.
///
/// # Errors
/// The object cannot be built, or, when checking, does not come from the source.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.check_source {
        check_source()?;
        say("the committed object comes from the committed source (by its recorded hashes)");
        return Ok(ExitCode::SUCCESS);
    }
    let (object, provenance) = build(args.toolchain)?;
    if args.check {
        check_source()?;
        check(&object, &provenance)?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = workspace::path(OBJECT);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(&path, &object).with_context(|| format!("cannot write {}", path.display()))?;
    provenance.write(&workspace::path(PROVENANCE))?;
    say(&format!(
        "wrote {OBJECT} ({} bytes) and {PROVENANCE}",
        object.len()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Fails unless the recorded hashes are those of the source and the object at hand.
pub(crate) fn check_source() -> Result<()> {
    let recorded = Provenance::read(&workspace::path(PROVENANCE))?;
    let source = source::hash()?;
    ensure!(
        recorded.source_sha256 == source,
        "{OBJECT} was made from other source than this: run `cargo xtask build-ebpf` and commit what it writes \
         (recorded {}, found {source})",
        recorded.source_sha256
    );
    let object = read_object()?;
    let found = provenance::sha256(&object);
    ensure!(
        recorded.object_sha256 == found,
        "{OBJECT} is not the object that {PROVENANCE} is about: run `cargo xtask build-ebpf` and commit both \
         (recorded {}, found {found})",
        recorded.object_sha256
    );
    Ok(())
}

/// Debian's rustc-web: a compiler that Debian has standard libraries of other architectures for.
///
/// # Errors
/// When it cannot be had.
pub(crate) fn rustc_web() -> Result<Toolchain> {
    toolchain::find(Some(Way::RustcWeb))
}

fn check(object: &[u8], made: &Provenance) -> Result<()> {
    let recorded = Provenance::read(&workspace::path(PROVENANCE))?;
    let committed = read_object()?;
    if let Some(difference) = recorded.difference_of_tools(made) {
        let (committed, rebuilt) = (Contents::read(&committed)?, Contents::read(object)?);
        if let Some(difference) = committed.difference(&rebuilt) {
            bail!("{OBJECT} does not come from this source: {difference}");
        }
        say(&format!(
            "the committed object has the programs, maps, settings, types and licence that this source gives; bytes were \
             not compared, because {difference}"
        ));
        return Ok(());
    }
    ensure!(
        committed == object,
        "{OBJECT} differs from what its recorded compiler and linker make of this source: run `cargo xtask build-ebpf` \
         and commit what it writes"
    );
    say("the committed object is, byte for byte, what this source gives");
    Ok(())
}

fn build(way: Option<Way>) -> Result<(Vec<u8>, Provenance)> {
    let source = source::hash()?;
    let toolchain = toolchain::find(way)?;
    let linker = linker::find()?;
    say(&format!(
        "compiling with {} ({}: {}), its library source at {}, linking with {} ({})",
        toolchain.version,
        toolchain.origin,
        toolchain.rustc.display(),
        toolchain.library_source.display(),
        linker.version,
        linker.program.display()
    ));
    let raw = compile::run(&toolchain, &linker)?;
    let object = finish::run(&raw).context("cannot finish the compiled object")?;
    let provenance = Provenance {
        compiler: toolchain.version,
        library_sha256: toolchain.library_sha256,
        llvm: toolchain.llvm,
        linker: linker.version,
        source_sha256: source,
        object_sha256: provenance::sha256(&object),
    };
    Ok((object, provenance))
}

fn read_object() -> Result<Vec<u8>> {
    fs::read(workspace::path(OBJECT))
        .with_context(|| format!("cannot read {OBJECT}; `cargo xtask build-ebpf` makes it"))
}
