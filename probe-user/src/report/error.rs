//! Why a report could not be made: one sentence each, with the input, the reason and the remedy.

use std::io;
use std::path::PathBuf;

use crate::exit::Exit;

/// A report that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file could not be read.
    #[error("cannot read {}: {error}; check the name and the permissions", path.display())]
    Unreadable {
        /// Its name.
        path: PathBuf,
        /// The system's refusal.
        error: io::Error,
    },
    /// A file holds nothing that joinprobe wrote.
    #[error(
        "{} holds no joinprobe measurements ({reason}); name files that `--hlog` or `-o json` wrote",
        path.display()
    )]
    NothingUsable {
        /// Its name.
        path: PathBuf,
        /// What was found instead.
        reason: String,
    },
    /// A file is larger than is read.
    #[error(
        "{} is larger than {most} GiB; name a part of it (each line stands for itself), or the smaller file of `--hlog`",
        path.display()
    )]
    TooLarge {
        /// Its name.
        path: PathBuf,
        /// What is read at most, GiB.
        most: u64,
    },
    /// A file is named twice.
    #[error("{} and {} are the same file; name it once", first.display(), second.display())]
    Twice {
        /// Where it was named first.
        first: PathBuf,
        /// Where it was named again.
        second: PathBuf,
    },
    /// The page could not be written.
    #[error("cannot write {}: {error}; choose another place for --html", path.display())]
    Unwritable {
        /// Its name.
        path: PathBuf,
        /// The system's refusal.
        error: io::Error,
    },
    /// A plot could not be drawn.
    #[error("cannot draw the plots: {0}")]
    Plot(String),
    /// Standard output could not be written.
    #[error(
        "cannot write the report to standard output: {0}; free the disk or redirect it elsewhere"
    )]
    Output(#[from] io::Error),
}

impl ReportError {
    /// The exit code of a process that ends with it.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Unreadable { .. }
            | Self::NothingUsable { .. }
            | Self::TooLarge { .. }
            | Self::Twice { .. }
            | Self::Unwritable { .. } => Exit::Usage,
            // Whoever closed the pipe has read enough.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Pass,
            Self::Plot(_) | Self::Output(_) => Exit::CouldNotMeasure,
        }
    }
}
