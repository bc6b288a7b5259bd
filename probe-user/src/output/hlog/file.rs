//! The file a log is appended to.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::output::ExportError;

/// A file that lines are appended to, whole ones only. One that was moved away, as log rotation does, is made anew.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    /// Our header is in it.
    headed: bool,
}

impl LogFile {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            open: None,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file without writing to it.
    pub(super) fn check(&mut self) -> Result<(), ExportError> {
        self.open = Some(self.take()?);
        Ok(())
    }

    /// Appends `lines`, after `header` where these are the first since the file was opened.
    pub(super) fn append(&mut self, header: &[u8], lines: &[u8]) -> Result<(), ExportError> {
        let mut open = self.take()?;
        let before = open.file.metadata().map_or(0, |metadata| metadata.len());
        let mut text = Vec::new();
        if !open.headed {
            text.extend_from_slice(ending(&mut open.file, before));
            text.extend_from_slice(header);
        }
        text.extend_from_slice(lines);
        let result = open.file.write_all(&text);
        if result.is_ok() {
            open.headed = true;
        } else {
            // Half a line would spoil the file for its readers.
            let _ = open.file.set_len(before);
        }
        self.open = Some(open);
        result.map_err(ExportError::io("write"))
    }

    fn take(&mut self) -> Result<Open, ExportError> {
        match self.open.take() {
            Some(open) if is_at(&open.file, &self.path) => Ok(open),
            _ => make(&self.path),
        }
    }
}

fn make(path: &Path) -> Result<Open, ExportError> {
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .open(path)
        .map_err(ExportError::io("open"))?;
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    let mut first = [0];
    if is_file && file.read(&mut first).map_err(ExportError::io("read"))? == 1 && first != *b"#" {
        return Err(ExportError::Refused(
            "the file is there and is not a histogram log; choose another name".to_owned(),
        ));
    }
    Ok(Open {
        file,
        headed: false,
    })
}

/// Whether `path` leads to the open file.
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    let ours = file.metadata().map(identity);
    let there = std::fs::metadata(path).map(identity);
    matches!((ours, there), (Ok(ours), Ok(there)) if ours == there)
}

/// A line feed where a killed process left half a line at the end of the file.
fn ending(file: &mut File, length: u64) -> &'static [u8] {
    let last = |file: &mut File| -> io::Result<u8> {
        let mut byte = [b'\n'];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut byte)?;
        Ok(byte[0])
    };
    if length > 0 && last(file).is_ok_and(|byte| byte != b'\n') {
        b"\n"
    } else {
        b""
    }
}
