//! Credential files as openssl writes them.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use joinprobe_lab::can_run;
use joinprobe_lab::programs::command;
use tempfile::TempDir;

/// Everything is made by openssl, whose files are what clusters hold.
pub(crate) struct Files(pub(crate) TempDir);

impl Files {
    /// An empty folder; `None` where openssl is missing.
    pub(crate) fn new() -> Result<Option<Self>> {
        if !can_run(&["openssl"])? {
            return Ok(None);
        }
        Ok(Some(Self(tempfile::tempdir()?)))
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> Result<PathBuf> {
        let path = self.at(name);
        fs::write(&path, contents)?;
        Ok(path)
    }

    pub(crate) fn openssl(&self, words: &str) -> Result<()> {
        let output = command("openssl")
            .args(words.split_whitespace())
            .current_dir(self.0.path())
            .output()
            .context("openssl is needed")?;
        ensure!(
            output.status.success(),
            "openssl {words}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    /// A self-signed certificate `NAME.crt` with a new key `NAME.key` of this kind.
    pub(crate) fn pair(&self, name: &str, kind: &str) -> Result<(PathBuf, PathBuf)> {
        self.openssl(&format!(
            "req -x509 -newkey {kind} -noenc -keyout {name}.key -out {name}.crt -days 30 -subj /CN={name}"
        ))?;
        Ok((
            self.at(&format!("{name}.crt")),
            self.at(&format!("{name}.key")),
        ))
    }
}
