//! The running kernel's version.

use std::fmt;

/// Release and version of the running kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kernel {
    /// As `uname -r` says.
    pub(super) release: String,
    /// Major and minor version; (0, 0) where the release does not start with them.
    pub(super) version: (u32, u32),
}

impl Kernel {
    /// The running kernel.
    pub(super) fn running() -> Self {
        Self::parse(&rustix::system::uname().release().to_string_lossy())
    }

    fn parse(release: &str) -> Self {
        let mut numbers = release
            .split(|c: char| !c.is_ascii_digit())
            .map(|part| part.parse().unwrap_or(0));
        Self {
            release: release.to_owned(),
            version: (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)),
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.release)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_vendors_append() {
        for (release, version) in [
            ("6.18.44-fc-v973", (6, 18)),
            ("5.14.0-427.el9.x86_64", (5, 14)),
            ("5.10", (5, 10)),
            ("6.1.0+", (6, 1)),
            ("next", (0, 0)),
        ] {
            assert_eq!(Kernel::parse(release).version, version, "{release}");
        }
    }
}
