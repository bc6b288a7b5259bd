//! Finds the root of the cgroup v2 hierarchy.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::error::AttachError;

/// How the host lays out its cgroup v2 hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hierarchy {
    /// Mounted here: `/sys/fs/cgroup`, or `/sys/fs/cgroup/unified` on hybrid hosts.
    Mounted(PathBuf),
    /// Mounted nowhere (cgroup v1 only); joinprobe holds a mount of its own that nobody else sees.
    Private,
    /// Chosen by the user.
    Chosen(PathBuf),
}

impl Hierarchy {
    /// What to call it in messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Mounted(path) | Self::Chosen(path) => path,
            Self::Private => Path::new("(private cgroup2 mount)"),
        }
    }
}

/// Which cgroup hierarchies are mounted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Where the root of the v2 hierarchy is.
    pub v2: Option<PathBuf>,
    /// Whether v1 hierarchies are.
    pub v1: bool,
}

impl Layout {
    /// That of this process's mount namespace.
    ///
    /// # Errors
    /// `/proc` is not there.
    pub fn here() -> io::Result<Self> {
        Ok(Self::parse(&fs::read_to_string("/proc/self/mountinfo")?))
    }

    fn parse(mounts: &str) -> Self {
        let is_v1 = |line: &str| {
            let after = line.split_once(" - ").map(|(_, after)| after);
            after.and_then(|after| after.split(' ').next()) == Some("cgroup")
        };
        Self {
            v2: root_mount(mounts),
            v1: mounts.lines().any(is_v1),
        }
    }
}

/// Opens the directory to attach to.
pub(super) fn open(chosen: Option<&Path>) -> Result<(File, Hierarchy), AttachError> {
    if let Some(path) = chosen {
        return Ok((open_directory(path)?, Hierarchy::Chosen(path.to_owned())));
    }
    // The filesystem type is what counts: distributions mount the hierarchy in different places.
    let mounts = match fs::read_to_string("/proc/self/mountinfo") {
        // Without /proc, as in a bare chroot, no mount can be found, and a private one serves as well.
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read.map_err(|error| AttachError::Io {
            what: "read /proc/self/mountinfo",
            error,
        })?,
    };
    if let Some(path) = root_mount(&mounts) {
        return Ok((open_directory(&path)?, Hierarchy::Mounted(path)));
    }
    let directory = mount_privately().map_err(|error| AttachError::NoCgroup2 { error })?;
    Ok((directory, Hierarchy::Private))
}

fn open_directory(path: &Path) -> Result<File, AttachError> {
    File::open(path).map_err(|error| AttachError::Cgroup {
        path: path.to_owned(),
        error,
    })
}

/// Mounts the hierarchy without attaching the mount anywhere: it is gone with the last descriptor, however joinprobe
/// ends. Needs `CAP_SYS_ADMIN` and Linux 5.2.
fn mount_privately() -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, openat};
    use rustix::mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen,
    };
    let filesystem = fsopen("cgroup2", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&filesystem)?;
    let mount: OwnedFd = fsmount(
        &filesystem,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )?;
    // The mount's own descriptor is a path only; the kernel asks for an opened directory.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(File::from(openat(&mount, ".", flags, Mode::empty())?))
}

/// The mount point of the hierarchy's root in the text of mountinfo (proc(5)), if it is mounted.
///
/// A mount of a part of the hierarchy (its root field is not `/`) would see only that part's sockets.
fn root_mount(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        if after.split(' ').next() != Some("cgroup2") {
            return None;
        }
        let mut fields = before.split(' ').skip(3);
        let (root, mount_point) = (fields.next()?, fields.next()?);
        (root == "/").then(|| unescape(mount_point))
    })
}

/// Undoes the octal escapes of blanks in mountinfo.
fn unescape(field: &str) -> PathBuf {
    let mut path = field.to_owned();
    for (escape, plain) in [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ] {
        path = path.replace(escape, plain);
    }
    PathBuf::from(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "\
24 30 0:22 / /sys rw,nosuid - sysfs sysfs rw
33 24 0:28 / /sys/fs/cgroup ro,nosuid shared:9 - tmpfs tmpfs ro,mode=755
36 33 0:31 / /sys/fs/cgroup/memory rw,nosuid shared:12 - cgroup cgroup rw,memory
";

    #[test]
    fn finds_unified_and_hybrid_layouts() {
        let unified =
            "35 24 0:29 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(root_mount(unified), Some("/sys/fs/cgroup".into()));
        assert!(!Layout::parse(unified).v1);
        let hybrid = format!(
            "{V1}34 33 0:29 / /sys/fs/cgroup/unified rw,nosuid shared:10 - cgroup2 cgroup2 rw\n"
        );
        assert_eq!(root_mount(&hybrid), Some("/sys/fs/cgroup/unified".into()));
    }

    #[test]
    fn ignores_v1_and_parts_of_the_hierarchy() {
        assert_eq!(root_mount(V1), None);
        assert_eq!(Layout::parse(V1), Layout { v2: None, v1: true });
        let part = "35 24 0:29 /system.slice /mnt rw - cgroup2 cgroup2 rw\n";
        assert_eq!(root_mount(part), None);
        let both = format!("{part}36 24 0:29 / /run/my\\040cgroup rw - cgroup2 none rw\n");
        assert_eq!(root_mount(&both), Some("/run/my cgroup".into()));
        assert_eq!(root_mount("nonsense\n - \n"), None);
    }
}
