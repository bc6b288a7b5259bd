//! The file system that a virtual machine starts with, in memory: all it ever has.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::kernel::Kernel;
use super::programs;

const INIT: &str = include_str!("init.sh");
/// Folders that are mounted on or written to.
const FOLDERS: [&str; 8] = ["bin", "usr/bin", "proc", "sys", "dev", "tmp", "run", "etc"];
/// tcpdump gives up root for this user.
const USERS: &str = "root:x:0:0::/:/bin/sh\ntcpdump:x:100:100::/:/bin/sh\n";
const GROUPS: &str = "root:x:0:\ntcpdump:x:100:\n";

/// Packs what all machines share: programs of ours under the names that the job calls them by, and others.
pub(crate) fn base(folder: &Path, own: &[(&Path, &str)], others: &[&str]) -> Result<PathBuf> {
    let tree = folder.join("base");
    let _ = fs::remove_dir_all(&tree);
    for name in FOLDERS {
        fs::create_dir_all(tree.join(name))?;
    }
    // Where systems without separate folders have them.
    symlink("usr/bin", tree.join("sbin"))?;
    fs::write(tree.join("etc/passwd"), USERS)?;
    fs::write(tree.join("etc/group"), GROUPS)?;
    fs::write(tree.join("init"), INIT)?;
    fs::set_permissions(tree.join("init"), fs::Permissions::from_mode(0o755))?;
    let busybox = programs::find("busybox")?;
    fs::copy(&busybox, tree.join("bin/busybox"))?;
    let mut all = vec![busybox];
    for (program, name) in own {
        programs::copy_stripped(program, &tree.join("usr/bin").join(name))?;
        all.push((*program).to_owned());
    }
    for name in others {
        let program = programs::find(name)?;
        fs::copy(&program, tree.join("usr/bin").join(name))?;
        all.push(program);
    }
    for library in programs::libraries(&all)? {
        let to = tree.join(library.strip_prefix("/")?);
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::copy(&library, &to).with_context(|| format!("cannot copy {}", library.display()))?;
    }
    let archive = folder.join("base.cpio");
    pack(&tree, &archive)?;
    fs::remove_dir_all(&tree)?;
    Ok(archive)
}

/// Adds a kernel's modules and the job, a shell script; the kernel unpacks archives that follow one another.
pub(crate) fn complete(base: &Path, kernel: &Kernel, folder: &Path, job: &str) -> Result<PathBuf> {
    let tree = folder.join("own");
    let _ = fs::remove_dir_all(&tree);
    let modules = tree.join("modules");
    fs::create_dir_all(&modules)?;
    let mut order = String::new();
    for module in &kernel.modules {
        let name = module.file_name().context("a module without a name")?;
        fs::copy(module, modules.join(name))?;
        order.push_str(&name.to_string_lossy());
        order.push('\n');
    }
    fs::write(modules.join("order"), order)?;
    fs::write(tree.join("job"), job)?;
    let own = folder.join("own.cpio");
    pack(&tree, &own)?;
    let image = folder.join("initramfs.cpio");
    let bytes = [fs::read(base)?, fs::read(&own)?].concat();
    fs::write(&image, bytes)?;
    fs::remove_dir_all(&tree)?;
    Ok(image)
}

/// Writes a folder as an archive in the format that the kernel reads.
fn pack(tree: &Path, archive: &Path) -> Result<()> {
    let script = "find . | busybox cpio -o -H newc";
    let file =
        fs::File::create(archive).with_context(|| format!("cannot write {}", archive.display()))?;
    let output = Command::new("sh")
        .args(["-c", script])
        .current_dir(tree)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(Stdio::piped())
        .output()
        .context("cannot start sh")?;
    ensure!(
        output.status.success(),
        "{script} failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}
