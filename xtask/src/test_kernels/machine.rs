//! The virtual machine.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::kernel::Kernel;
/// Longer than a job takes on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_mins(8);
const MEMORY_MIB: u32 = 1536;

/// What a machine wrote to its serial console.
pub(crate) struct Console {
    pub(crate) text: String,
    /// Where that is kept.
    pub(crate) log: PathBuf,
}

/// Boots a kernel and lets it do its job.
pub(crate) fn run(kernel: &Kernel, initramfs: &Path, folder: &Path) -> Result<Console> {
    let log = folder.join(format!("{}.log", kernel.package));
    let console = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let messages = console.try_clone()?;
    // Emulation: acceleration is not to be had in most virtual machines, and hangs in some.
    let mut machine = Command::new("qemu-system-x86_64")
        .args(["-machine", "accel=tcg", "-cpu", "max", "-smp", "2"])
        .args(["-m", &MEMORY_MIB.to_string()])
        .args(["-display", "none", "-monitor", "none", "-serial", "stdio"])
        .args(["-nic", "none", "-no-reboot"])
        .arg("-kernel")
        .arg(&kernel.image)
        .arg("-initrd")
        .arg(initramfs)
        .args(["-append", "console=ttyS0 quiet panic=-1 mitigations=off"])
        .stdin(Stdio::null())
        .stdout(console)
        .stderr(messages)
        .spawn()
        .context("cannot start qemu-system-x86_64")?;
    let started = Instant::now();
    while machine.try_wait()?.is_none() {
        if started.elapsed() > PATIENCE {
            let _ = machine.kill();
            let _ = machine.wait();
            bail!(
                "{} did not power off within {PATIENCE:?}: see {}",
                kernel.package,
                log.display()
            );
        }
        thread::sleep(Duration::from_millis(100));
    }
    let bytes = fs::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Console { text, log })
}
