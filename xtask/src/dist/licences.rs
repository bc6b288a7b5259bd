//! The licences of everything that is linked into the program.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::static_build;
use crate::workspace::cargo;

const INTRODUCTION: &str = "\
joinprobe is licensed under MIT or Apache-2.0 (LICENSE-MIT, LICENSE-APACHE).

The program is linked statically and contains the packages below, each with its licence and the texts that come with it,
and parts of the GNU C Library (LGPL-2.1-or-later, https://www.gnu.org/software/libc/). joinprobe's source builds with
any other version of that library (`cargo xtask dist`), as its licence asks for.
";

/// How files with licence texts begin, in capitals.
const NAMES: &[&str] = &[
    "LICENSE",
    "LICENCE",
    "COPYING",
    "COPYRIGHT",
    "NOTICE",
    "UNLICENSE",
];

/// One file with all of them. Texts that are the same are printed once.
///
/// # Errors
/// When cargo does not know the dependencies, or one has neither text nor licence.
pub(super) fn text() -> Result<String> {
    let metadata = metadata()?;
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut list = String::new();
    for package in linked(&metadata)? {
        let field = |name: &str| package[name].as_str().unwrap_or_default();
        let name = format!("{} {}", field("name"), field("version"));
        let licence = field("license");
        let found = licence_files(Path::new(field("manifest_path")))?;
        ensure!(
            !licence.is_empty() || !found.is_empty(),
            "{name} names no licence and has no licence text"
        );
        writeln!(list, "{name}: {licence}")?;
        for path in found {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            texts
                .entry(text.trim().to_owned())
                .or_default()
                .insert(name.clone());
        }
    }
    let mut all = format!("{INTRODUCTION}\n{list}");
    for (text, packages) in texts {
        let packages: Vec<_> = packages.into_iter().collect();
        write!(
            all,
            "\n{}\n{}\n\n{text}\n",
            "=".repeat(80),
            packages.join(", ")
        )?;
    }
    Ok(all)
}

fn metadata() -> Result<Value> {
    let output = cargo("metadata")?
        .args(["--format-version=1", "--locked", "--filter-platform"])
        .arg(static_build::triple())
        .output()?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The packages that the program is made of, in order of name: normal dependencies only, and none of this workspace.
fn linked(metadata: &Value) -> Result<Vec<&Value>> {
    let list = |value: &'static str| metadata[value].as_array().context("no such list");
    let packages: BTreeMap<&str, &Value> = list("packages")?
        .iter()
        .filter_map(|package| Some((package["id"].as_str()?, package)))
        .collect();
    let nodes: BTreeMap<&str, &Value> = metadata["resolve"]["nodes"]
        .as_array()
        .context("no dependency graph")?
        .iter()
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let mut pending: Vec<&str> = packages
        .iter()
        .filter(|(_, package)| package["name"] == "probe-user")
        .map(|(id, _)| *id)
        .collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = pending.pop() {
        if !seen.insert(id) {
            continue;
        }
        let dependencies = nodes.get(id).and_then(|node| node["deps"].as_array());
        for dependency in dependencies.into_iter().flatten() {
            let kinds = dependency["dep_kinds"].as_array();
            // No kind is a normal dependency; the others are "dev" and "build".
            let normal = kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()));
            if normal {
                pending.extend(dependency["pkg"].as_str());
            }
        }
    }
    let mut linked: Vec<&Value> = seen
        .into_iter()
        .filter_map(|id| packages.get(id).copied())
        .filter(|package| !package["source"].is_null())
        .collect();
    linked.sort_by_key(|package| (package["name"].to_string(), package["version"].to_string()));
    Ok(linked)
}

/// The licence texts beside a manifest, and in a folder of their own.
fn licence_files(manifest: &Path) -> Result<Vec<PathBuf>> {
    let folder = manifest.parent().context("a manifest without a folder")?;
    let mut files = Vec::new();
    for folder in [folder.to_owned(), folder.join("LICENSES")] {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .to_uppercase();
            let is_text =
                folder.ends_with("LICENSES") || NAMES.iter().any(|start| name.starts_with(start));
            if is_text && path.is_file() {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}
