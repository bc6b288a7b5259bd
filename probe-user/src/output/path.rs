//! Paths that outputs are written to.

use std::path::Path;

/// The path cannot serve: one sentence with the reason and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum BadPath {
    /// It is not one that node_exporter would read.
    #[error(
        "--textfile {path}: node_exporter reads only files whose names end in .prom; write it as {better}"
    )]
    Name {
        /// As it was given.
        path: String,
        /// With the right ending.
        better: String,
    },
    /// Its folder is not there.
    #[error("{flag} {path}: the folder {folder} does not exist; create it or correct the path")]
    Folder {
        /// The flag it was given with.
        flag: &'static str,
        /// As it was given.
        path: String,
        /// What is not there.
        folder: String,
    },
}

/// Looks at the start for the folder of a file to write. One that goes later may come back, so that is waited for.
///
/// # Errors
/// It does not exist.
pub fn check_folder(flag: &'static str, path: &Path) -> Result<(), BadPath> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    match folder.try_exists() {
        Ok(false) => Err(BadPath::Folder {
            flag,
            path: path.display().to_string(),
            folder: folder.display().to_string(),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_folder_that_is_not_there_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        check_folder("--hlog", &folder.path().join("rtt.hlog")).unwrap();
        check_folder("--hlog", Path::new("rtt.hlog")).unwrap();
        let error = check_folder("--hlog", &folder.path().join("no/rtt.hlog")).unwrap_err();
        assert!(error.to_string().contains("/no does not exist; create it"));
    }
}
