//! Which callbacks `sock_ops` programs have asked for, socket by socket.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::assembled::{instruction, object_file};
use crate::netns::{Namespace, run};
use crate::programs::command;
use crate::unique;

/// A pinned iterator over TCP sockets that writes ports and callback flags. Dropping it removes it.
#[derive(Debug)]
pub struct CallbackFlags {
    pinned: PathBuf,
}

impl CallbackFlags {
    /// Loads it. `folder` is for the object file. Needs Linux 6.12.
    ///
    /// # Errors
    /// When bpftool cannot load it, or there is no BPF file system.
    pub fn load(folder: &Path) -> Result<Self> {
        let file = folder.join("flags.bpf.o");
        fs::write(&file, object_file("iter/tcp", "lab_flags", &code())?)?;
        let pinned = Path::new("/sys/fs/bpf").join(unique::name());
        run(command("bpftool")
            .args(["iter", "pin"])
            .arg(&file)
            .arg(&pinned))
        .context("cannot load the iterator over sockets")?;
        Ok(Self { pinned })
    }

    /// The flags (`BPF_SOCK_OPS_*_CB_FLAG`) of every TCP socket of a namespace that is no request and not in TIME-WAIT,
    /// by local port and remote port.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(&self, namespace: &Namespace) -> Result<BTreeMap<(u16, u16), u32>> {
        let bytes = namespace.enter(|| fs::read(&self.pinned))??;
        let (records, _) = bytes.as_chunks::<8>();
        Ok(records
            .iter()
            .map(|&[l0, l1, r0, r1, f0, f1, f2, f3]| {
                let ports = (u16::from_ne_bytes([l0, l1]), u16::from_be_bytes([r0, r1]));
                (ports, u32::from_ne_bytes([f0, f1, f2, f3]))
            })
            .collect())
    }
}

impl Drop for CallbackFlags {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.pinned);
    }
}

/// `if (sk && bpf_getsockopt(sk, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &record.flags, 4) == 0) bpf_seq_write(meta->seq,
/// &record, 8); return 0;`
///
/// In `struct bpf_iter__tcp` the meta data is at 0 and the socket at 8; a `struct sock_common` has the remote port at 12
/// and the local one at 14, as it has had since 3.7.
fn code() -> [[u8; 8]; 23] {
    [
        instruction(0xbf, 0x16, 0, 0),    // r6 = ctx
        instruction(0x79, 0x67, 8, 0),    // r7 = sk
        instruction(0x15, 0x07, 18, 0),   // if r7 == 0 goto out
        instruction(0x69, 0x71, 14, 0),   // r1 = skc_num
        instruction(0x6b, 0x1a, -8, 0),   // record.local = r1
        instruction(0x69, 0x71, 12, 0),   // r1 = skc_dport
        instruction(0x6b, 0x1a, -6, 0),   // record.remote = r1
        instruction(0xbf, 0x71, 0, 0),    // r1 = sk
        instruction(0xb7, 0x02, 0, 6),    // r2 = SOL_TCP
        instruction(0xb7, 0x03, 0, 1008), // r3 = TCP_BPF_SOCK_OPS_CB_FLAGS
        instruction(0xbf, 0xa4, 0, 0),    // r4 = fp
        instruction(0x07, 0x04, 0, -4),   // r4 = &record.flags
        instruction(0xb7, 0x05, 0, 4),    // r5 = 4
        instruction(0x85, 0x00, 0, 57),   // bpf_getsockopt
        instruction(0x55, 0x00, 6, 0),    // if r0 != 0 goto out
        instruction(0x79, 0x61, 0, 0),    // r1 = meta
        instruction(0x79, 0x11, 0, 0),    // r1 = meta->seq
        instruction(0xbf, 0xa2, 0, 0),    // r2 = fp
        instruction(0x07, 0x02, 0, -8),   // r2 = &record
        instruction(0xb7, 0x03, 0, 8),    // r3 = 8
        instruction(0x85, 0x00, 0, 127),  // bpf_seq_write
        instruction(0xb7, 0x00, 0, 0),    // out: r0 = 0
        instruction(0x95, 0x00, 0, 0),
    ]
}
