//! The programs, maps and links that a process holds.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;

use crate::programs::command;
use anyhow::{Context, Result};

/// Ids of BPF objects, as `/proc/PID/fdinfo` shows them (`kernel/bpf/syscall.c`, `bpf_*_show_fdinfo`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BpfObjects {
    /// Programs.
    pub programs: BTreeSet<u32>,
    /// Maps.
    pub maps: BTreeSet<u32>,
    /// Links.
    pub links: BTreeSet<u32>,
}

impl BpfObjects {
    /// What a process has open now.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn of(pid: u32) -> Result<Self> {
        let mut objects = Self::default();
        let folder = format!("/proc/{pid}/fdinfo");
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {folder}"))? {
            // A descriptor may be closed while this reads.
            let info = fs::read_to_string(entry?.path()).unwrap_or_default();
            let value = |key: &str| -> Option<u32> {
                info.lines()
                    .find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
            };
            // A link's entry names its program too.
            objects.programs.extend(value("prog_id:"));
            objects.maps.extend(value("map_id:"));
            objects.links.extend(value("link_id:"));
        }
        Ok(objects)
    }

    /// The id of the program of this name (the kernel keeps 15 bytes of it).
    ///
    /// # Errors
    /// When there is none.
    pub fn program_named(&self, name: &str) -> Result<u32> {
        let found = self.programs.iter().find(|id| {
            command("bpftool")
                .args(["-j", "prog", "show", "id", &id.to_string()])
                .output()
                .is_ok_and(|output| {
                    String::from_utf8_lossy(&output.stdout).contains(&format!("\"{name}\""))
                })
        });
        found
            .copied()
            .with_context(|| format!("no program {name} among {:?}", self.programs))
    }

    /// Those that the kernel still has.
    #[must_use]
    pub fn alive(&self) -> Self {
        let alive = |kind: &str, ids: &BTreeSet<u32>| {
            ids.iter().copied().filter(|id| exists(kind, *id)).collect()
        };
        Self {
            programs: alive("prog", &self.programs),
            maps: alive("map", &self.maps),
            links: alive("link", &self.links),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.programs.is_empty() && self.maps.is_empty() && self.links.is_empty()
    }
}

fn exists(kind: &str, id: u32) -> bool {
    let status = command("bpftool")
        .args([kind, "show", "id", &id.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}
