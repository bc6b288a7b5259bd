//! Finding the programs that the lab starts.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a program of this name is: on the `PATH`, in the folders of system programs, which a user's `PATH` may lack,
/// or among those that `cargo xtask` unpacked.
#[must_use]
pub fn locate(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut folders = env::split_paths(&path)
        .chain(system)
        .chain([unpacked().join("usr/bin")]);
    folders.find_map(|folder| Some(folder.join(name)).filter(|path| path.is_file()))
}

/// The folder into which `cargo xtask` unpacks packages that it does not install, since those would start a service.
#[must_use]
pub fn unpacked() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let workspace = own.parent().unwrap_or(own);
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    workspace.join(target).join("lab-tools")
}

/// A command of a program; starting it says so when it is missing.
#[must_use]
pub fn command(name: &str) -> Command {
    Command::new(locate(name).unwrap_or_else(|| name.into()))
}
