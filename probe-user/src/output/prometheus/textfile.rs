//! `--textfile PATH.prom`: for node_exporter's textfile collector.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::format::Format;
use super::snapshot::Snapshot;
use crate::output::{BadPath, ExportError, Exporter, IntervalReport, Report};

/// node_exporter often runs as another user.
const MODE: u32 = 0o644;

/// Replaces one file with every report; a reader sees the old one or the new one, never half of it.
#[derive(Debug)]
pub struct Textfile {
    path: PathBuf,
    temporary: PathBuf,
    last: Snapshot,
}

impl Textfile {
    /// An exporter to `path`.
    ///
    /// # Errors
    /// The name does not end in `.prom`.
    pub fn new(path: &Path) -> Result<Self, BadPath> {
        match path.file_name() {
            Some(name)
                if path
                    .extension()
                    .is_some_and(|extension| extension == "prom") =>
            {
                // Does not end in .prom, so that nobody reads it, and no other process writes it.
                let mut temporary = std::ffi::OsString::from(".");
                temporary.push(name);
                temporary.push(format!(".{}.tmp", std::process::id()));
                Ok(Self {
                    path: path.to_owned(),
                    temporary: path.with_file_name(temporary),
                    last: Snapshot::default(),
                })
            }
            _ => Err(BadPath::Name {
                path: path.display().to_string(),
                better: path.with_extension("prom").display().to_string(),
            }),
        }
    }

    fn publish(&mut self, snapshot: Snapshot) -> Result<(), ExportError> {
        let snapshot = Arc::new(snapshot);
        let text = Format::Text
            .encode(&snapshot)
            .map_err(ExportError::Encode)?;
        self.last = Arc::unwrap_or_clone(snapshot);
        let result = self.replace(&text);
        if result.is_err() {
            let _ = std::fs::remove_file(&self.temporary);
        }
        result
    }

    fn replace(&self, text: &[u8]) -> Result<(), ExportError> {
        // Left by a process of the same id that was killed; anything else of that name is not ours to write through.
        let _ = std::fs::remove_file(&self.temporary);
        let mut file: File = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(MODE)
            .open(&self.temporary)
            .map_err(ExportError::io("create a temporary file beside it"))?;
        file.write_all(text).map_err(ExportError::io("write"))?;
        // The umask may have taken something away.
        file.set_permissions(std::fs::Permissions::from_mode(MODE))
            .map_err(ExportError::io("make it readable"))?;
        file.sync_all()
            .map_err(ExportError::io("bring it to the disk"))?;
        std::fs::rename(&self.temporary, &self.path).map_err(ExportError::io("put it in place"))
    }
}

impl Exporter for Textfile {
    fn name(&self) -> String {
        format!("--textfile {}", self.path.display())
    }

    fn interval(&mut self, report: &IntervalReport) -> Result<(), ExportError> {
        self.publish(Snapshot::of_interval(report, &self.last))
    }

    fn verdict(&mut self, report: &Report) -> Result<(), ExportError> {
        self.publish(Snapshot::of_run(report, &self.last))
    }
}
