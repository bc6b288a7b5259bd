//! The filesystem that is looked through: this host's, or one that is mounted or laid out below a directory.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use zeroize::Zeroizing;

use super::error::{DiscoverError, Kind};

/// Largest configuration that is read. A kubeconfig of a large site is some tens of kilobytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// Where `/` is. Symbolic links, absolute ones too, stay below it, as they would after `chroot`.
#[derive(Clone, Debug, Default)]
pub struct Root(Option<PathBuf>);

impl Root {
    /// Looks below `directory` instead of `/`, for example at a host's filesystem that is mounted in a container.
    #[must_use]
    pub fn at(directory: &Path) -> Self {
        Self((directory != Path::new("/")).then(|| directory.to_owned()))
    }

    /// How `path` is shown to people: where they find it from where they stand.
    #[must_use]
    pub fn shown(&self, path: &Path) -> PathBuf {
        match &self.0 {
            Some(directory) => directory.join(path.strip_prefix("/").unwrap_or(path)),
            None => path.to_owned(),
        }
    }

    /// Where `path` really is, with every symbolic link followed below the root.
    ///
    /// # Errors
    /// It does not exist or cannot be reached.
    pub fn locate(&self, path: &Path) -> io::Result<PathBuf> {
        if self.0.is_none() {
            return std::fs::metadata(path).map(|_| path.to_owned());
        }
        let file = self.open(path, OFlags::PATH)?;
        std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
    }

    /// Whether there is anything at `path`; what cannot be reached counts as absent.
    #[must_use]
    pub fn has(&self, path: &Path) -> bool {
        self.open(path, OFlags::PATH).is_ok()
    }

    fn open(&self, path: &Path, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::CLOEXEC;
        let Some(directory) = &self.0 else {
            return Ok(openat(CWD, path, flags, Mode::empty())?.into());
        };
        let base = openat(
            CWD,
            directory,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let inside = path.strip_prefix("/").unwrap_or(path);
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        Ok(openat2(base, inside, flags, Mode::empty(), resolve)?.into())
    }

    /// Reads a text file; `None` when there is none.
    ///
    /// # Errors
    /// It cannot be read, is not a regular file, is larger than 1 MiB, empty, or not text.
    pub(super) fn read(&self, kind: Kind, path: &Path) -> Result<Option<Text>, DiscoverError> {
        let shown = self.shown(path);
        let unreadable = |source| DiscoverError::Unreadable {
            kind,
            path: shown.clone(),
            source,
        };
        let refuse = |reason: &str| Err(DiscoverError::unusable(kind, &shown, reason));
        // Opening a FIFO would wait for its writer; without blocking it is opened, recognised and refused.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = match self.open(path, flags) {
            Ok(file) => file,
            Err(error) if absent(&error) => return Ok(None),
            Err(error) => return Err(unreadable(error)),
        };
        let metadata = file.metadata().map_err(unreadable)?;
        if metadata.is_dir() {
            return refuse("it is a directory");
        }
        if !metadata.is_file() {
            return refuse("it is not a regular file");
        }
        if metadata.len() > MAX_BYTES {
            return refuse("it is larger than 1 MiB");
        }
        // A buffer that never moves: growing would leave copies of a token behind.
        let capacity = usize::try_from(metadata.len()).unwrap_or(0) + 64;
        let mut bytes = Zeroizing::new(Vec::with_capacity(capacity));
        file.take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        if bytes.len() as u64 > MAX_BYTES {
            return refuse("it is larger than 1 MiB");
        }
        if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
            return refuse("it is UTF-16; save it as UTF-8");
        }
        if bytes.contains(&0) || std::str::from_utf8(&bytes).is_err() {
            return refuse("it is not text");
        }
        if bytes.trim_ascii().is_empty() {
            return refuse("it is empty");
        }
        Ok(Some(Text {
            source: Source {
                kind,
                path: shown,
                inside: path.to_owned(),
            },
            bytes,
        }))
    }
}

/// Whether the error says that there is nothing at the path.
fn absent(error: &io::Error) -> bool {
    [Errno::NOENT, Errno::NOTDIR]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// `path` as seen from the directory of `file`; absolute paths stay as they are. `..` is taken textually, as kubectl
/// does for the paths in a kubeconfig.
pub(super) fn beside(file: &Path, path: &str) -> PathBuf {
    let mut joined = PathBuf::new();
    for component in file
        .parent()
        .unwrap_or(Path::new("/"))
        .join(path)
        .components()
    {
        match component {
            Component::ParentDir => {
                joined.pop();
            }
            Component::CurDir => {}
            other => joined.push(other),
        }
    }
    joined
}

/// A file by its two names.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) kind: Kind,
    /// As people find it.
    pub(super) path: PathBuf,
    /// As it is called below the root.
    pub(super) inside: PathBuf,
}

/// A text file in memory, wiped when dropped.
pub(super) struct Text {
    pub(super) source: Source,
    bytes: Zeroizing<Vec<u8>>,
}

impl Text {
    /// Text that came from elsewhere; `name` is what messages call it.
    pub(super) fn new(kind: Kind, name: &str, text: &str) -> Self {
        Self {
            source: Source {
                kind,
                path: PathBuf::from(name),
                inside: PathBuf::from("/"),
            },
            bytes: Zeroizing::new(text.as_bytes().to_vec()),
        }
    }

    /// The text.
    pub(super) fn as_str(&self) -> &str {
        // Checked when it was read. Editors put a byte order mark before the text, which is none of it.
        let text = std::str::from_utf8(&self.bytes).unwrap_or_default();
        text.strip_prefix('\u{feff}').unwrap_or(text)
    }
}
