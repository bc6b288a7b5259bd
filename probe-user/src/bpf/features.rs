//! What this kernel and these rights allow beyond the least, and what is lost without.

use aya::programs::ProgramType;
use aya::sys::{BpfHelper, is_helper_supported};

use super::attach_points::{AttachPoints, Point};
use super::btf::KernelTypes;
use super::capability::{Capabilities, PERFMON};
use super::config::{Grouping, ObserverConfig, Scope};
use super::error::AttachError;
use super::existing::SocketOffsets;
use super::lockdown;
use super::reconstruction::ReconstructionOffsets;
use super::syscall;
use super::task::TaskOffsets;

/// The main program with everything.
const WHOLE_PROGRAM: &str = "joinprobe_ops";

/// The main program without all that reads kernel memory or writes the log.
pub(super) fn plain_program(netns_known: bool) -> &'static str {
    if netns_known {
        "joinprobe_plain"
    } else {
        "joinprobe_least"
    }
}

/// The features that are used. What is off is removed from the program by the kernel's verifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Features {
    /// The main program to load: the kernel refuses what it may not do, used or not.
    pub(super) program: &'static str,
    /// The namespaces that are really observed: old kernels cannot tell them apart.
    pub(super) scope: Scope,
    /// Cookie of the only namespace that is observed; 0 for all.
    pub(super) netns: u64,
    /// Whether namespaces can be told apart.
    pub(super) netns_known: bool,
    /// Where a socket's error is; `None` where it may not or cannot be read.
    pub(super) sk_err_offset: Option<u32>,
    /// What rows are about.
    pub(super) grouping: Grouping,
    /// How to tell which process opens a connection; `None` where that may not or cannot be told, or nobody asks.
    pub(super) task: Option<TaskOffsets>,
    /// Where the fields are that reconstructing samples needs; or why it cannot be done.
    pub(super) reconstruction: Result<ReconstructionOffsets, String>,
    /// How to read sockets that are not the callback's; or why it cannot be done.
    pub(super) sockets: Result<SocketOffsets, String>,
    /// What tracing programs attach to; all unknown where the kernel's types may not or cannot be read.
    pub(super) attach_points: AttachPoints,
    /// Whether flows are found by their sockets' addresses; otherwise in the sockets' storage, which takes longer.
    pub(super) flow_table: bool,
    /// Whether the kernel side sends its debug lines.
    pub(super) kernel_log: bool,
    /// One sentence for each thing that is lost.
    pub(super) limitations: Vec<String>,
}

impl Features {
    /// Finds out what can be used.
    pub(super) fn detect(config: &ObserverConfig) -> Result<Self, AttachError> {
        let mut limitations = Vec::new();
        let netns_known = knows_namespaces();
        let own = syscall::netns_cookie().map_err(|error| AttachError::Io {
            what: "make a socket",
            error,
        })?;
        let (scope, netns) = match (config.scope, own) {
            (Scope::OwnNamespace, Some(cookie)) if netns_known => (Scope::OwnNamespace, cookie),
            (Scope::OwnNamespace, _) if !config.own_only => {
                limitations.push(
                    "connections of all network namespaces are observed: this kernel cannot tell them apart (Linux 5.15 \
                     can)"
                        .to_owned(),
                );
                (Scope::AllNamespaces, 0)
            }
            (scope, _) => (scope, 0),
        };
        let types = kernel_types();
        let sk_err_offset = types.as_ref().map_err(Clone::clone).and_then(sk_err_offset);
        // What names processes.
        let task = if config.events || config.grouping == Grouping::Processes {
            types
                .as_ref()
                .map_err(Clone::clone)
                .and_then(TaskOffsets::find)
                .map(Some)
        } else {
            Ok(None)
        };
        let attach_points = types.as_ref().map(AttachPoints::find).unwrap_or_default();
        let needing = |point| {
            let types = types.as_ref().map_err(Clone::clone);
            types.and_then(|types| attach_points.has(point).map(|()| types))
        };
        let reconstruction = needing(Point::TcpProbe).and_then(ReconstructionOffsets::find);
        let sockets = needing(Point::Sockets).and_then(SocketOffsets::find);
        drop(types);
        limitations.extend(lost(
            sk_err_offset.as_ref().err(),
            task.as_ref().err(),
            config.grouping,
        ));
        let (sk_err_offset, task) = (sk_err_offset.ok(), task.ok().flatten());
        let reads_kernel = Capabilities::effective().has(PERFMON);
        if config.kernel_log && !reads_kernel {
            limitations.push(format!(
                "the kernel side's debug lines are off: {} is missing",
                PERFMON.name
            ));
        }
        let program = if reads_kernel {
            WHOLE_PROGRAM
        } else {
            plain_program(netns_known)
        };
        Ok(Self {
            program,
            scope,
            netns,
            netns_known,
            sk_err_offset,
            grouping: config.grouping,
            task,
            reconstruction,
            sockets,
            attach_points,
            // It relies on x86's order of writes.
            flow_table: cfg!(target_arch = "x86_64") && reads_kernel,
            kernel_log: config.kernel_log && reads_kernel,
            limitations,
        })
    }

    /// A namespace, given its cookie, as keys and events name it: 0 while only one is observed or none can be told from
    /// another.
    pub(super) fn netns_key(&self, cookie: Option<u64>) -> u64 {
        match self.scope {
            Scope::AllNamespaces if self.netns_known => cookie.unwrap_or(0),
            Scope::AllNamespaces | Scope::OwnNamespace => 0,
        }
    }
}

/// Says what is lost with the kernel's sockets or tasks unreadable; one sentence for both where the reason is the same.
pub(super) fn lost(
    causes: Option<&String>,
    processes: Option<&String>,
    grouping: Grouping,
) -> Vec<String> {
    const CAUSES: &str = "failed connections are counted without their cause";
    let unnamed = match grouping {
        Grouping::Targets => "events do not name the process that opened a connection",
        Grouping::Processes => {
            "processes can be neither told apart (--by process) nor named in events"
        }
    };
    if let (Some(reason), true) = (causes, causes == processes) {
        return vec![format!("{CAUSES}, and {unnamed}: {reason}")];
    }
    [(CAUSES, causes), (unnamed, processes)]
        .into_iter()
        .filter_map(|(what, reason)| Some(format!("{what}: {}", reason?)))
        .collect()
}

fn knows_namespaces() -> bool {
    is_helper_supported(ProgramType::SockOps, BpfHelper::BPF_FUNC_get_netns_cookie).unwrap_or_else(
        |error| {
            log::debug!("cannot tell whether the kernel knows namespace cookies: {error}");
            false
        },
    )
}

/// The kernel's types, or why what needs them is not to be had.
fn kernel_types() -> Result<KernelTypes, String> {
    if !Capabilities::effective().has(PERFMON) {
        return Err(format!("{} is missing", PERFMON.name));
    }
    if lockdown::mode().is_some_and(|mode| lockdown::forbids_reading(&mode)) {
        return Err("the kernel is locked down (confidentiality)".to_owned());
    }
    KernelTypes::running()
        .map_err(|error| format!("the kernel's type information (BTF) is not there ({error})"))
}

/// Where `sk_err` is in `struct sock`, or why it cannot be read.
fn sk_err_offset(types: &KernelTypes) -> Result<u32, String> {
    types
        .offset("sock", "sk_err")
        .ok_or_else(|| "the kernel's type information (BTF) has no sock.sk_err".to_owned())
}
