//! Connections that were there before the observer: adopted when it comes, given back when it goes.
//!
//! An iterator of the kernel's visits the sockets and sets their callback flags (6.12). It sees one network namespace,
//! that of whoever opened it.

use std::fs::File;
use std::io;

use aya::programs::iter::IterLink;
use aya::programs::{Iter, ProgramError};
use aya::{Btf, Ebpf, EbpfLoader};
use probe_common::stats::{
    ADOPT, ITERATION_CELL, ITERATION_NETNS_CELL, RELEASE, SOCK_OPS_PROGRAMS_CELL, Stat,
};

use super::attach;
use super::attach_points::Point;
use super::btf::KernelTypes;
use super::capability::{Capabilities, Capability, SYS_ADMIN, SYS_PTRACE};
use super::config::Scope;
use super::error::AttachError;
use super::features::Features;
use super::kernel::Kernel;
use super::load;
use super::mapped::MappedCells;
use super::namespaces;
use super::syscall::netns_cookie;

const FLOWS: &str = "joinprobe_flows";
const PROGRAMS: &str = "joinprobe_programs";

/// The first Linux that lets programs outside the callback set callback flags.
pub(super) const SINCE: (u32, u32) = (6, 12);

/// Offsets of fields of `struct sock_common` and `struct tcp_sock`, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SocketOffsets {
    fields: [u32; FIELDS.len()],
    /// That of `bpf_prog.type`, without which no sockets are given back; 0 where it is not known.
    program_type: u32,
}

/// The kernel side's setting, and the field whose offset it is.
const FIELDS: [(&str, &str, &str); 8] = [
    ("SKC_STATE_OFFSET", "sock_common", "skc_state"),
    ("SKC_FAMILY_OFFSET", "sock_common", "skc_family"),
    ("SKC_DPORT_OFFSET", "sock_common", "skc_dport"),
    ("SKC_NUM_OFFSET", "sock_common", "skc_num"),
    ("SKC_DADDR_OFFSET", "sock_common", "skc_daddr"),
    ("SKC_V6_DADDR_OFFSET", "sock_common", "skc_v6_daddr"),
    ("TOTAL_RETRANS_OFFSET", "tcp_sock", "total_retrans"),
    ("DATA_SEGS_OUT_OFFSET", "tcp_sock", "data_segs_out"),
];

impl SocketOffsets {
    /// Those of the running kernel, or why they are of no use.
    pub(super) fn find(types: &KernelTypes) -> Result<Self, String> {
        let mut offsets = Self::default();
        for (offset, (_, structure, member)) in offsets.fields.iter_mut().zip(FIELDS) {
            *offset = types.offset(structure, member).ok_or_else(|| {
                format!("the kernel's type information (BTF) has no {structure}.{member}")
            })?;
        }
        offsets.program_type = types.offset("bpf_prog", "type").unwrap_or(0);
        Ok(offsets)
    }

    /// Tells them to the kernel side.
    pub(super) fn set<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        for (offset, (setting, ..)) in self.fields.iter().zip(FIELDS) {
            loader.override_global(setting, offset, true);
        }
        loader.override_global("PROGRAM_TYPE_OFFSET", &self.program_type, true);
    }
}

/// What gives the sockets back.
#[derive(Debug)]
pub(super) struct Release {
    /// Iterators over the sockets of this process's namespace, and of others in which something was adopted (which live
    /// as long as these).
    flows: Vec<File>,
    /// An iterator over the loaded programs; `None` where there can be none, and then nothing is given back.
    programs: Option<File>,
}

/// What became of the connections that are there.
#[derive(Debug)]
pub(super) struct Adoption {
    pub(super) release: Release,
    /// What of it could not be, for people; one sentence each.
    pub(super) limitations: Vec<String>,
}

/// Observes the connections that are there from now on.
///
/// # Errors
/// Why this kernel does not allow it, for people.
pub(super) fn adopt(
    ebpf: &mut Ebpf,
    stats: &MappedCells,
    features: &Features,
    kernel: &Kernel,
) -> Result<Adoption, String> {
    let offsets = *features.sockets.as_ref().map_err(Clone::clone)?;
    let types = features.attach_points.as_types()?;
    load_iterator(ebpf, FLOWS, "tcp", &types, kernel)?;
    let mut limitations = Vec::new();
    let programs = features
        .attach_points
        .has(Point::Programs)
        .and_then(|()| match offsets.program_type {
            0 => Err("the kernel's type information (BTF) has no bpf_prog.type".to_owned()),
            _ => load_iterator(ebpf, PROGRAMS, "bpf_prog", &types, kernel),
        })
        .and_then(|()| open(link(ebpf, PROGRAMS, kernel)?))
        .map_err(|reason| {
            limitations.push(format!(
                "callback flags stay set on connections when joinprobe ends, which costs nothing: {reason}"
            ));
        })
        .ok();
    drop(types);
    let mut release = Release {
        flows: Vec::new(),
        programs,
    };
    let [now, later] = pair(ebpf, kernel)?.map(open);
    let cookie = netns_cookie().map_err(|error| error.to_string())?;
    visit(&now?, stats, ADOPT, features.netns_key(cookie))?;
    release.flows.push(later?);
    let mut unseen = None;
    if features.scope == Scope::AllNamespaces {
        let others = namespaces::others();
        // What is forbidden all the same is not for want of rights.
        if others.forbidden && !Capabilities::effective().is_set(SYS_PTRACE) {
            unseen = Some(SYS_PTRACE);
        }
        for namespace in others.open {
            let links = pair(ebpf, kernel)?;
            let opened = namespaces::inside(&namespace, || (links.map(open), netns_cookie()));
            match opened {
                Ok(([Ok(now), Ok(later)], Ok(cookie))) => {
                    let before = adopted(stats);
                    visit(&now, stats, ADOPT, features.netns_key(cookie))?;
                    if adopted(stats) > before {
                        release.flows.push(later);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    unseen = Some(SYS_ADMIN);
                    break;
                }
                other => {
                    log::debug!("a network namespace's connections are not adopted: {other:?}");
                }
            }
        }
    }
    match stats.load(Stat::AdoptionsRefused as u32) {
        0 => {
            limitations.extend(unseen.map(unseen_for));
            Ok(Adoption {
                release,
                limitations,
            })
        }
        _ => Err(older(kernel)),
    }
}

fn load_iterator(
    ebpf: &mut Ebpf,
    name: &'static str,
    kind: &str,
    types: &Btf,
    kernel: &Kernel,
) -> Result<(), String> {
    let program: &mut Iter = attach::program(ebpf, name).map_err(|error| error.to_string())?;
    program
        .load(kind, types)
        .map_err(|error| says(error, kernel))
}

/// What is lost without a capability that leads into other namespaces.
fn unseen_for(first: Capability) -> String {
    let capabilities = Capabilities::effective();
    let missing: Vec<_> = [SYS_ADMIN, SYS_PTRACE]
        .into_iter()
        .filter(|&capability| capability == first || !capabilities.is_set(capability))
        .map(|capability| capability.name)
        .collect();
    format!(
        "connections of other network namespaces that were there before are not all observed: that takes {}",
        missing.join(" and ")
    )
}

/// Why a kernel does not adopt, whatever words it has for it.
fn older(kernel: &Kernel) -> String {
    if kernel.version >= SINCE {
        return format!("kernel {kernel} refuses to let programs ask for their callbacks");
    }
    format!(
        "kernel {kernel} does not let programs ask for their callbacks; Linux 6.12 or newer does"
    )
}

fn pair(ebpf: &mut Ebpf, kernel: &Kernel) -> Result<[IterLink; 2], String> {
    Ok([link(ebpf, FLOWS, kernel)?, link(ebpf, FLOWS, kernel)?])
}

/// How many connections were adopted so far.
pub(super) fn adopted(stats: &MappedCells) -> u64 {
    stats.load(Stat::FlowsAdopted as u32)
}

impl Release {
    /// Takes back the callback flags that were set. To be called when the hook is free again, or what is established in
    /// between keeps its flags.
    ///
    /// Nothing happens while any other `sock_ops` program is loaded: it may have found the flags set and live by them.
    /// Flags without a program cost nothing, and end with their connection.
    pub(super) fn release(self, stats: &MappedCells) {
        let Some(programs) = &self.programs else {
            return;
        };
        stats.store(SOCK_OPS_PROGRAMS_CELL, 0);
        if let Err(error) = read_through(programs) {
            log::debug!("callback flags stay set: loaded programs cannot be listed: {error}");
            return;
        }
        // One is ours.
        if stats.load(SOCK_OPS_PROGRAMS_CELL) > 1 {
            log::debug!("callback flags stay set: another sock_ops program may need them");
            return;
        }
        for flows in &self.flows {
            if let Err(reason) = visit(flows, stats, RELEASE, 0) {
                log::debug!("callback flags stay set: {reason}");
            }
        }
    }
}

/// Visits every socket of the namespace in which the iterator was opened.
fn visit(flows: &File, stats: &MappedCells, mode: u64, netns: u64) -> Result<(), String> {
    stats.store(ITERATION_NETNS_CELL, netns);
    stats.store(ITERATION_CELL, mode);
    read_through(flows)
        .map_err(|error| format!("the kernel's list of sockets cannot be read: {error}"))
}

/// The iterators write nothing; reading runs them.
fn read_through(mut iterator: &File) -> io::Result<()> {
    io::copy(&mut iterator, &mut io::sink()).map(drop)
}

fn link(ebpf: &mut Ebpf, name: &'static str, kernel: &Kernel) -> Result<IterLink, String> {
    let program: &mut Iter = attach::program(ebpf, name).map_err(|error| error.to_string())?;
    program
        .attach()
        .and_then(|id| program.take_link(id))
        .map_err(|error| says(error, kernel))
}

fn open(link: IterLink) -> Result<File, String> {
    link.into_file().map_err(|error| error.to_string())
}

fn says(error: ProgramError, kernel: &Kernel) -> String {
    match load::explain_program(error, kernel) {
        AttachError::Refused { reason, .. } if kernel.version < SINCE => {
            log::debug!("the kernel refuses to adopt connections: {reason}");
            older(kernel)
        }
        AttachError::Refused { reason, .. } => reason,
        other => other.to_string(),
    }
}
