//! Loads the embedded object.

use std::io;

use aya::maps::MapError;
use aya::programs::ProgramError;
use aya::{Ebpf, EbpfError};
use probe_common::cells::STRIDE;
use probe_common::endpoint::FIXED_SLOTS;

use super::capability::{self, Capabilities};
use super::config::{Grouping, ObserverConfig};
use super::error::AttachError;
use super::features::Features;
use super::kernel::Kernel;
use super::loader;
use super::stats::RttSource;
use super::syscall;

/// The compiled kernel side; `cargo xtask build-ebpf` makes it.
static OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/joinprobe.bpf.o"));

/// Bytes of the event ring: room for 400 events, four seconds of them at the rate limit.
const EVENT_RING: u32 = 1 << 15;
/// Bytes of the kernel log's ring.
const LOG_RING: u32 = 1 << 17;
/// The smallest ring; for those that are off.
const NO_RING: u32 = 4096;
/// Events that are let through in one second.
const EVENTS_PER_SECOND: u32 = 100;
/// Own probe connections that can be marked at one time.
pub(super) const MAX_OWN: u32 = 1024;

/// Connections whose samples can be reconstructed at one time; each takes about 100 bytes once it has had a sample.
const MAX_RECONSTRUCTIONS: u32 = 16_384;

/// The level that lets every line of the kernel side through (`aya_log::Level::Trace`).
const LOG_ALL: u8 = 5;

const MAKE_MAPS: &str = "make maps";

/// Makes the maps and relocates the programs; nothing is attached yet.
pub(super) fn load(
    config: &ObserverConfig,
    features: &Features,
    kernel: &Kernel,
) -> Result<Ebpf, AttachError> {
    if kernel.version < (5, 11)
        && let Err(error) = syscall::lift_memlock_limit()
    {
        // A limit set high enough beforehand will do.
        log::debug!("cannot lift the limit of locked memory: {error}");
    }
    let own_only = u8::from(config.own_only);
    let by_process = u8::from(config.grouping == Grouping::Processes);
    let netns_known = u8::from(features.netns_known);
    let flow_table = u8::from(features.flow_table);
    let reconstruction = features.reconstruction.clone().unwrap_or_default();
    let sockets = features.sockets.clone().unwrap_or_default();
    let task = features.task.unwrap_or_default();
    let reconstructions = match (reconstruction.are_known(), config.own_only) {
        (false, _) => 1,
        (true, true) => MAX_OWN,
        (true, false) => MAX_RECONSTRUCTIONS,
    };
    let raw_ignored = u8::from(!matches!(config.rtt_source, None | Some(RttSource::Raw)));
    let sk_err_offset = features.sk_err_offset.unwrap_or(0);
    let events = if config.events { EVENTS_PER_SECOND } else { 0 };
    let log_level = if features.kernel_log { LOG_ALL } else { 0 };
    let targets = config.targets();
    let addresses = u32::try_from(config.addresses.len()).unwrap_or(u32::MAX);

    let mut loader = loader::new();
    loader
        .override_global("NETNS_COOKIE", &features.netns, true)
        .override_global("NETNS_COOKIE_KNOWN", &netns_known, true)
        .override_global("FLOW_TABLE", &flow_table, true)
        .override_global("SK_ERR_OFFSET", &sk_err_offset, true)
        .override_global("RAW_IGNORED", &raw_ignored, true)
        .override_global("OWN_ONLY", &own_only, true)
        .override_global("BY_PROCESS", &by_process, true)
        .override_global("EVENTS_PER_SECOND", &events, true)
        .override_global(aya_log::LEVEL, &log_level, true)
        .map_max_entries("CELLS", (FIXED_SLOTS + targets) * STRIDE)
        .map_max_entries("SLOTS", targets)
        .map_max_entries("FREE_SLOTS", targets)
        .map_max_entries("ADDRESSES", addresses.max(1))
        .map_max_entries("OWN", MAX_OWN)
        .map_max_entries("RECONSTRUCTIONS", reconstructions)
        .map_max_entries("EVENTS", if config.events { EVENT_RING } else { NO_RING })
        .map_max_entries(
            "AYA_LOGS",
            if features.kernel_log {
                LOG_RING
            } else {
                NO_RING
            },
        );
    task.set(&mut loader);
    reconstruction.set(&mut loader);
    sockets.set(&mut loader);
    if config.own_only {
        // Not consulted, so not needed.
        loader.map_max_entries("PORTS", 1);
    }
    loader
        .load(OBJECT)
        .map_err(|error| explain_load(error, kernel))
}

/// Turns aya's error into a sentence for people.
fn explain_load(error: EbpfError, kernel: &Kernel) -> AttachError {
    match error {
        EbpfError::MapError(error) => explain_map(error, kernel),
        EbpfError::ProgramError(error) => explain_program(error, kernel),
        EbpfError::BtfError(aya::BtfError::LoadError { io_error, .. }) => {
            explain_refusal(io_error, MAKE_MAPS, kernel)
        }
        other => AttachError::Object(other.to_string()),
    }
}

fn explain_map(error: MapError, kernel: &Kernel) -> AttachError {
    match error {
        MapError::CreateError { io_error, .. } => explain_refusal(io_error, MAKE_MAPS, kernel),
        MapError::SyscallError(error) => explain_refusal(error.io_error, "fill maps", kernel),
        other => AttachError::Object(other.to_string()),
    }
}

/// Turns the error of a program's loading or attaching into a sentence for people.
pub(super) fn explain_program(error: ProgramError, kernel: &Kernel) -> AttachError {
    match error {
        ProgramError::LoadError {
            io_error,
            verifier_log,
        } => {
            let text = verifier_log.to_string();
            log::debug!("the verifier says:\n{text}");
            if is_permission(&io_error) && text.trim().is_empty() {
                return explain_refusal(io_error, "load the program", kernel);
            }
            let reason = last_words(&text).unwrap_or_else(|| io_error.to_string());
            AttachError::Refused {
                release: kernel.release.clone(),
                reason,
            }
        }
        ProgramError::SyscallError(error) => explain_refusal(error.io_error, error.call, kernel),
        other => AttachError::Object(other.to_string()),
    }
}

/// Tells "not allowed" from "not supported".
pub(super) fn explain_refusal(
    error: io::Error,
    call: &'static str,
    kernel: &Kernel,
) -> AttachError {
    if error.raw_os_error() == Some(libc::ENOSYS) {
        return AttachError::NoBpf {
            release: kernel.release.clone(),
        };
    }
    if !is_permission(&error) {
        if kernel.version < (5, 10) && kernel.version != (0, 0) {
            return AttachError::KernelTooOld {
                release: kernel.release.clone(),
            };
        }
        return AttachError::Io { what: call, error };
    }
    let capabilities = Capabilities::effective();
    let needed: &[_] = if kernel.version < (5, 8) && kernel.version != (0, 0) {
        &[capability::SYS_ADMIN]
    } else {
        &[capability::BPF, capability::NET_ADMIN]
    };
    let missing = capabilities.missing(needed);
    if !missing.is_empty() {
        let verb = if missing.len() == 1 { "is" } else { "are" };
        return AttachError::MissingCapability {
            missing: format!("{} {verb}", missing.join(" and ")),
        };
    }
    if capability::in_user_namespace() {
        return AttachError::UserNamespace;
    }
    if kernel.version < (5, 11) && call == MAKE_MAPS {
        return AttachError::LockedMemory {
            release: kernel.release.clone(),
        };
    }
    AttachError::Forbidden { call }
}

fn is_permission(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// The last line of the verifier's log that is not statistics.
fn last_words(log: &str) -> Option<String> {
    const STATISTICS: [&str; 4] = [
        "processed ",
        "verification time",
        "stack depth",
        "mark_precise",
    ];
    log.lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty() && !STATISTICS.iter().any(|word| line.starts_with(word)))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verifiers_last_words_are_its_reason() {
        let log =
            "0: R1=ctx() R10=fp0\n1: (95) exit\nR0 !read_ok\nprocessed 2 insns (limit 1000000)\n\n";
        assert_eq!(last_words(log).as_deref(), Some("R0 !read_ok"));
        assert_eq!(last_words("processed 0 insns\n"), None);
    }
}
