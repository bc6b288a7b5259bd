//! A hash over everything that decides what the object is, but for compiler and linker.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use ring::digest::{Context, SHA256};
use serde::Deserialize;
use toml::{Table, Value};

use super::{compile, provenance};
use crate::workspace;

/// Folders whose Rust files and manifests go in.
const FOLDERS: [&str; 2] = ["probe-ebpf", "probe-common"];

/// Hashes the sources of the kernel side and of the types it shares, their manifests, the workspace's settings that
/// reach them, the compiler flags, and the locked versions of the eBPF crates.
pub(super) fn hash() -> Result<String> {
    let mut hasher = Context::new(&SHA256);
    for file in files()? {
        let name = file
            .strip_prefix(workspace::root())
            .unwrap_or(&file)
            .to_string_lossy()
            .into_owned();
        let content = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        add(&mut hasher, name.as_bytes(), &content);
    }
    add(&mut hasher, b"settings", settings()?.as_bytes());
    add(&mut hasher, b"flags", compile::FLAGS.join(" ").as_bytes());
    for package in locked_packages()? {
        add(&mut hasher, b"package", package.as_bytes());
    }
    Ok(provenance::hex(hasher.finish().as_ref()))
}

/// Adds a name and what it stands for. Lengths keep two neighbours from being taken for one.
pub(super) fn add(hasher: &mut Context, name: &[u8], content: &[u8]) {
    for part in [name, content] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
}

/// Rust files and manifests, in a fixed order.
fn files() -> Result<BTreeSet<PathBuf>> {
    let folders = FOLDERS.map(workspace::path);
    let mut files = rust_files(&folders.clone().map(|folder| folder.join("src")))?;
    files.extend(folders.map(|folder| folder.join("Cargo.toml")));
    Ok(files)
}

/// Rust files in folders and those within, in a fixed order.
pub(super) fn rust_files(folders: &[PathBuf]) -> Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    for folder in folders {
        collect(folder, &mut files)?;
    }
    Ok(files)
}

fn collect(folder: &Path, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.insert(path);
        }
    }
    Ok(())
}

/// The workspace's release profile and edition: the rest of its manifest is none of the kernel side's business.
fn settings() -> Result<String> {
    let manifest: Table = read_toml("Cargo.toml")?;
    let part = |path: &[&str]| {
        path.iter()
            .try_fold(&Value::Table(manifest.clone()), |value, key| value.get(key))
            .map(ToString::to_string)
            .unwrap_or_default()
    };
    Ok(format!(
        "{}\n{}",
        part(&["profile", "release"]),
        part(&["workspace", "package", "edition"])
    ))
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    #[serde(default)]
    checksum: String,
    #[serde(default)]
    dependencies: Vec<String>,
}

/// Name, version and checksum of every aya crate that the kernel side is built with.
fn locked_packages() -> Result<BTreeSet<String>> {
    let lock: Lock = read_toml("Cargo.lock")?;
    let packages: BTreeMap<&str, &Package> = lock
        .package
        .iter()
        .map(|package| (package.name.as_str(), package))
        .collect();
    let mut reached = BTreeSet::new();
    let mut waiting = vec!["probe-ebpf"];
    while let Some(name) = waiting.pop() {
        // `aya` itself is the user side's, reached through an optional dependency of probe-common.
        if name == "aya" || !reached.insert(name) {
            continue;
        }
        if let Some(package) = packages.get(name) {
            waiting.extend(
                package
                    .dependencies
                    .iter()
                    .filter_map(|dependency| dependency.split(' ').next()),
            );
        }
    }
    Ok(reached
        .iter()
        // What the rest does (parsing macros, running rustc) leaves no trace in the object.
        .filter(|name| name.starts_with("aya-") && **name != "aya-build")
        .filter_map(|name| packages.get(name))
        .map(|package| format!("{} {} {}", package.name, package.version, package.checksum))
        .collect())
}

fn read_toml<T: for<'de> Deserialize<'de>>(name: &str) -> Result<T> {
    let text =
        fs::read_to_string(workspace::path(name)).with_context(|| format!("cannot read {name}"))?;
    toml::from_str(&text).with_context(|| format!("cannot understand {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_sides_crates_are_known() {
        let packages = locked_packages().unwrap();
        for name in ["aya-ebpf ", "aya-log-ebpf ", "aya-ebpf-bindings "] {
            assert!(
                packages.iter().any(|package| package.starts_with(name)),
                "{name} not in {packages:?}"
            );
        }
        assert!(!packages.iter().any(|package| package.starts_with("aya ")));
    }

    #[test]
    fn settings_are_found() {
        let settings = settings().unwrap();
        assert!(settings.contains("lto"), "{settings}");
        assert!(settings.contains("2024"), "{settings}");
    }
}
