//! Runs cargo for the BPF target.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::linker::Linker;
use super::toolchain::Toolchain;
use crate::workspace::{self, finish, output_of};

/// Little-endian eBPF: every host that Kubernetes runs on but s390x.
const TARGET: &str = "bpfel-unknown-none";
/// Compiler flags that decide what the object is. Debug information is what the linker makes BTF from. Not among them is
/// `-Ctarget-cpu=v3`, with which half of a stack slot may be written where a pointer lay: without `CAP_PERFMON`, 5.10 and
/// 6.1 refuse that.
pub(super) const FLAGS: [&str; 2] = ["-Cdebuginfo=2", "-Clink-arg=--btf"];

/// Compiles probe-ebpf and returns the linked object.
pub(super) fn run(toolchain: &Toolchain, linker: &Linker) -> Result<Vec<u8>> {
    let target_folder = workspace::path("target/ebpf");
    let mut command = Command::new(cargo());
    command
        .args(["build", "--package", "probe-ebpf", "--release", "--locked"])
        .args(["-Z", "build-std=core", "--target", TARGET])
        .arg("--target-dir")
        .arg(&target_folder)
        .current_dir(workspace::root())
        .env("RUSTC", &toolchain.rustc)
        // Where the linker finds the compiler's LLVM, and the compiler its own libraries.
        .env("LD_LIBRARY_PATH", &toolchain.libraries)
        // Lets a stable compiler use the two unstable things a BPF target needs: its own core, and inline assembly.
        .env("RUSTC_BOOTSTRAP", "1")
        // The bindings of one architecture, whatever the host, so that the object is the same everywhere. What differs
        // between them (registers of kprobes) is not used.
        .env("AYA_BPF_TARGET_ARCH", "x86_64")
        // The workspace's release profile is for size; this side is for speed.
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "3")
        .env("CARGO_ENCODED_RUSTFLAGS", flags(toolchain, linker)?);
    for variable in [
        "RUSTFLAGS",
        "RUSTUP_TOOLCHAIN",
        "RUSTC_WRAPPER",
        "CARGO_TARGET_DIR",
    ] {
        command.env_remove(variable);
    }
    finish(&mut command).context("cannot compile probe-ebpf")?;
    let object = target_folder
        .join(TARGET)
        .join("release")
        .join("joinprobe-ebpf");
    fs::read(&object).with_context(|| format!("cannot read {}", object.display()))
}

/// Flags separated as cargo wants them, those first that decide what the object is. Paths of this machine are replaced,
/// or the bytes would depend on them.
fn flags(toolchain: &Toolchain, linker: &Linker) -> Result<OsString> {
    let mut flags: Vec<OsString> = FLAGS.map(OsString::from).into();
    let mut linker_flag = OsString::from("-Clinker=");
    linker_flag.push(&linker.program);
    flags.push(linker_flag);
    for (path, name) in [
        // The last that fits counts: by default, the toolchain is unpacked inside the workspace.
        (workspace::root().to_owned(), "/joinprobe"),
        (cargo_home()?, "/cargo"),
        (toolchain.library_source.canonicalize()?, "/rust/library"),
        (toolchain.library_source.clone(), "/rust/library"),
    ] {
        // Cargo names what lies inside the workspace relative to it.
        let relative = path.strip_prefix(workspace::root()).ok();
        let relative = relative.filter(|path| !path.as_os_str().is_empty());
        for path in [Some(path.as_path()), relative].into_iter().flatten() {
            let mut flag = OsString::from("--remap-path-prefix=");
            flag.push(path);
            flag.push("=");
            flag.push(name);
            flags.push(flag);
        }
    }
    Ok(flags.join(std::ffi::OsStr::new("\u{1f}")))
}

/// rustup's stable cargo by its own path: through rustup's proxy it would insist on its own compiler.
fn cargo() -> PathBuf {
    output_of(Command::new("rustup").args(["which", "--toolchain", "stable", "cargo"]))
        .map(|path| PathBuf::from(path.trim()))
        .or_else(|_| std::env::var("CARGO").map(PathBuf::from))
        .unwrap_or_else(|_| PathBuf::from("cargo"))
}

fn cargo_home() -> Result<PathBuf> {
    if let Some(home) = std::env::var_os("CARGO_HOME") {
        return Ok(PathBuf::from(home));
    }
    let home = std::env::var_os("HOME").context("neither CARGO_HOME nor HOME is set")?;
    Ok(Path::new(&home).join(".cargo"))
}
