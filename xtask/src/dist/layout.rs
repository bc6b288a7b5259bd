//! Which file goes where in the tarball: below /usr/local it is where programs look for it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::manuals::Manual;

/// Files of the repository, and where they go. A folder is taken with everything below it.
const FILES: &[(&str, &str)] = &[
    ("README.md", "share/doc/joinprobe/README.md"),
    ("LICENSE-MIT", "share/doc/joinprobe/LICENSE-MIT"),
    ("LICENSE-APACHE", "share/doc/joinprobe/LICENSE-APACHE"),
    ("docs", "share/doc/joinprobe/docs"),
    (
        "docs/systemd/joinprobe-watch.service",
        "lib/systemd/system/joinprobe-watch.service",
    ),
];

/// A folder that is being filled.
pub(super) struct Layout {
    folder: PathBuf,
}

impl Layout {
    pub(super) fn new(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// An executable file.
    pub(super) fn program(&self, from: &Path, to: &str) -> Result<()> {
        self.put(&fs::read(from)?, to, 0o755)
    }

    /// A text.
    pub(super) fn text(&self, to: &str, text: &str) -> Result<()> {
        self.put(text.as_bytes(), to, 0o644)
    }

    /// Man pages or completions, where man and the shells look for them.
    pub(super) fn manuals(&self, manual: Manual, folder: &Path) -> Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let extension = Path::new(&name).extension().and_then(|end| end.to_str());
            let to = match (manual, extension) {
                (Manual::Man, _) => format!("share/man/man1/{name}"),
                (Manual::Completions, Some("bash")) => {
                    "share/bash-completion/completions/joinprobe".to_owned()
                }
                (Manual::Completions, Some("fish")) => {
                    format!("share/fish/vendor_completions.d/{name}")
                }
                (Manual::Completions, _) => format!("share/zsh/site-functions/{name}"),
            };
            self.put(&fs::read(entry.path())?, &to, 0o644)?;
        }
        Ok(())
    }

    /// What is taken from the repository as it is.
    pub(super) fn repository(&self, root: &Path) -> Result<()> {
        for (from, to) in FILES {
            self.copy(&root.join(from), to)?;
        }
        Ok(())
    }

    fn copy(&self, from: &Path, to: &str) -> Result<()> {
        if !from.is_dir() {
            let contents =
                fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
            return self.put(&contents, to, 0o644);
        }
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let name = entry.file_name();
            self.copy(&entry.path(), &format!("{to}/{}", name.to_string_lossy()))?;
        }
        Ok(())
    }

    fn put(&self, contents: &[u8], to: &str, mode: u32) -> Result<()> {
        let path = self.folder.join(to);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, contents).with_context(|| format!("cannot write {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        Ok(())
    }
}
