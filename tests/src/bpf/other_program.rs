//! A `sock_ops` program like those of a network plugin: it answers one callback and counts on being called.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::assembled::{instruction, object_file};
use crate::netns::run;
use crate::programs::command;
use crate::unique;

/// Its answer to `BPF_SOCK_OPS_RWND_INIT`: the first receive window, in segments. Far from any default, so that a SYN
/// on the wire shows whether the answer was kept.
pub const RWND_PACKETS: u32 = 3;

/// The program, loaded and pinned. Dropping it removes it.
#[derive(Debug)]
pub struct OtherProgram {
    pinned: PathBuf,
}

/// The program on a cgroup. Dropping it detaches it.
#[derive(Debug)]
pub struct Attached<'a> {
    program: &'a OtherProgram,
    cgroup: PathBuf,
}

impl OtherProgram {
    /// Loads it. `folder` is for the object file.
    ///
    /// # Errors
    /// When bpftool cannot load it, or there is no BPF file system.
    pub fn load(folder: &Path) -> Result<Self> {
        // BPF_SOCK_OPS_RWND_INIT
        Self::replying_to(folder, 2)
    }

    /// Loads one that writes its reply at another callback (`BPF_SOCK_OPS_*`).
    ///
    /// # Errors
    /// As for [`OtherProgram::load`].
    pub fn replying_to(folder: &Path, op: u32) -> Result<Self> {
        Self::load_code(folder, &code(op))
    }

    /// Loads one that does nothing: the least that any program on the hook costs.
    ///
    /// # Errors
    /// As for [`OtherProgram::load`].
    pub fn load_empty(folder: &Path) -> Result<Self> {
        Self::load_code(folder, &[instruction(0xb7, 0x00, 0, 1), EXIT])
    }

    /// Loads one that replaces a socket's callback flags (`BPF_SOCK_OPS_*_CB_FLAG`) whenever it is called.
    ///
    /// # Errors
    /// As for [`OtherProgram::load`].
    pub fn flagging(folder: &Path, flags: i32) -> Result<Self> {
        let code = [
            instruction(0xb7, 0x02, 0, flags),
            instruction(0x85, 0x00, 0, 59), // bpf_sock_ops_cb_flags_set
            instruction(0xb7, 0x00, 0, 1),
            EXIT,
        ];
        Self::load_code(folder, &code)
    }

    fn load_code(folder: &Path, code: &[[u8; 8]]) -> Result<Self> {
        let file = folder.join("other.bpf.o");
        std::fs::write(&file, object_file("sockops", "lab_other", code)?)?;
        let pinned = Path::new("/sys/fs/bpf").join(unique::name());
        run(command("bpftool")
            .args(["prog", "load"])
            .arg(&file)
            .arg(&pinned)
            .args(["type", "sockops"]))
        .context("cannot load the other program")?;
        Ok(Self { pinned })
    }

    /// Attaches it, as one of several (`multi`) or on its own.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn attach(&self, cgroup: &Path, multi: bool) -> Result<Attached<'_>> {
        let mut command = command("bpftool");
        command
            .args(["cgroup", "attach"])
            .arg(cgroup)
            .args(["cgroup_sock_ops", "pinned"])
            .arg(&self.pinned);
        if multi {
            command.arg("multi");
        }
        run(&mut command)?;
        Ok(Attached {
            program: self,
            cgroup: cgroup.to_owned(),
        })
    }

    /// Its id.
    ///
    /// # Errors
    /// When bpftool fails.
    pub fn id(&self) -> Result<u32> {
        let output = command("bpftool")
            .args(["-j", "prog", "show", "pinned"])
            .arg(&self.pinned)
            .output()?;
        let shown: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let id = shown
            .get("id")
            .and_then(serde_json::Value::as_u64)
            .context("bpftool shows no id")?;
        Ok(u32::try_from(id)?)
    }
}

impl Drop for OtherProgram {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.pinned);
    }
}

impl Drop for Attached<'_> {
    fn drop(&mut self) {
        let _ = run(command("bpftool")
            .args(["cgroup", "detach"])
            .arg(&self.cgroup)
            .args(["cgroup_sock_ops", "pinned"])
            .arg(&self.program.pinned));
    }
}

/// `if (ctx->op == op) ctx->reply = RWND_PACKETS; return 1;`
fn code(op: u32) -> [[u8; 8]; 6] {
    // In struct bpf_sock_ops (linux/bpf.h) op is at 0 and reply at 4.
    [
        instruction(0x61, 0x12, 0, 0),
        instruction(0x55, 0x02, 2, op.cast_signed()),
        instruction(0xb7, 0x03, 0, RWND_PACKETS.cast_signed()),
        instruction(0x63, 0x31, 4, 0),
        instruction(0xb7, 0x00, 0, 1),
        EXIT,
    ]
}

/// `return r0;`
const EXIT: [u8; 8] = instruction(0x95, 0x00, 0, 0);
