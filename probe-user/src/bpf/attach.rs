//! From a configuration to a running observer: loads, fills the maps, attaches.

use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use aya::Ebpf;
use aya::maps::{Array, HashMap, Map, MapData, MapError, Stack};
use aya::programs::sock_ops::SockOpsLink;
use aya::programs::{CgroupAttachMode, Program, ProgramError, SockOps};
use probe_common::endpoint::FIXED_SLOTS;
use probe_common::ports::{AddressKey, BY_ADDRESS, shift_of, word_of};
use probe_common::stats::{INTERVAL_CELL, STATS};

use super::cgroup::{self, Hierarchy};
use super::config::ObserverConfig;
use super::earlier::{self, Earlier, NotAdopted};
use super::error::AttachError;
use super::features::Features;
use super::hook;
use super::kernel::Kernel;
use super::load;
use super::mapped::MappedCells;
use super::reduce;
use super::source;
use super::stats::RttSource;

/// Fills the maps that the kernel side reads; before attaching, so that no connection is judged by half of them.
fn fill_maps(ebpf: &mut Ebpf, config: &ObserverConfig) -> Result<(), AttachError> {
    let mut free: Stack<_, u32> = typed(ebpf, "FREE_SLOTS")?;
    // The last one pushed is the first one taken.
    for slot in (FIXED_SLOTS..FIXED_SLOTS + config.targets()).rev() {
        free.push(slot, 0).map_err(map_error)?;
    }
    if config.own_only {
        return Ok(());
    }
    let mut words = std::collections::BTreeMap::<u32, u64>::new();
    for &(port, role) in &config.ports {
        *words.entry(word_of(port)).or_default() |= u64::from(role as u8) << shift_of(port);
    }
    let mut addresses: HashMap<_, AddressKey, u32> = typed(ebpf, "ADDRESSES")?;
    for &(address, role) in &config.addresses {
        *words.entry(word_of(address.port())).or_default() |=
            u64::from(BY_ADDRESS) << shift_of(address.port());
        let key = AddressKey {
            address: mapped_octets(address),
            port: address.port(),
            reserved: 0,
        };
        addresses.insert(key, role as u32, 0).map_err(map_error)?;
    }
    let mut ports: Array<_, u64> = typed(ebpf, "PORTS")?;
    for (word, value) in words {
        ports.set(word, value, 0).map_err(map_error)?;
    }
    Ok(())
}

/// What runs in the kernel.
pub(super) struct Attached {
    pub(super) ebpf: Ebpf,
    /// Keeps the program on the cgroup.
    pub(super) hook: SockOpsLink,
    pub(super) hierarchy: Hierarchy,
    /// Where RTT samples come from; `None` if that only shows with the first.
    pub(super) source: Option<RttSource>,
    /// The observer's own counters.
    pub(super) stats: MappedCells,
    /// The connections that were there before.
    pub(super) earlier: Earlier,
}

/// Loads everything into the kernel, with fewer features where it refuses some, and attaches it.
pub(super) fn run(
    config: &ObserverConfig,
    features: &mut Features,
    kernel: &Kernel,
) -> Result<Attached, AttachError> {
    let detected = features.clone();
    match once(config, features, kernel)? {
        Ok(attached) => Ok(attached),
        Err(NotAdopted(reason)) => {
            log::debug!("attaching again to sample what cannot be adopted: {reason}");
            *features = Features {
                sockets: Err(reason),
                ..detected
            };
            once(config, features, kernel)?.map_err(|NotAdopted(reason)| {
                // What is known not to be adopted is sampled or left alone.
                AttachError::Object(reason)
            })
        }
    }
}

/// Attaches it, unless connections from before are to be sampled after all: they have to be noted before the hook is taken,
/// or some are both observed and sampled.
fn once(
    config: &ObserverConfig,
    features: &mut Features,
    kernel: &Kernel,
) -> Result<Result<Attached, NotAdopted>, AttachError> {
    let mut ebpf = reduce::until_accepted(features, |features| {
        let mut ebpf = load::load(config, features, kernel)?;
        fill_maps(&mut ebpf, config)?;
        load_program(&mut ebpf, features.program, kernel)?;
        Ok(ebpf)
    })?;
    let (directory, hierarchy) = cgroup::open(config.cgroup.as_deref())?;
    let source = source::choose(&mut ebpf, &directory, config, features, kernel)?;
    let noted = earlier::note(config, features, kernel);
    let hook = attach(&mut ebpf, features.program, &directory, &hierarchy, kernel)?;
    let stats = mapped(&ebpf, "STATS", 1, STATS)?;
    // 0, as it was until here, means no interval yet: what came in between counts in this one.
    stats.store(INTERVAL_CELL, 1);
    let earlier = if config.own_only {
        Ok(Earlier::Ignored)
    } else {
        Earlier::take(&mut ebpf, noted, &stats, features, kernel)
    };
    Ok(earlier.map(|earlier| Attached {
        ebpf,
        hook,
        hierarchy,
        source,
        stats,
        earlier,
    }))
}

fn load_program(ebpf: &mut Ebpf, name: &'static str, kernel: &Kernel) -> Result<(), AttachError> {
    program::<SockOps>(ebpf, name)?
        .load()
        .map_err(|error| load::explain_program(error, kernel))
}

/// A program by name, as the type it is used as.
pub(super) fn program<'a, P>(
    ebpf: &'a mut Ebpf,
    name: &'static str,
) -> Result<&'a mut P, AttachError>
where
    &'a mut P: TryFrom<&'a mut Program, Error = ProgramError>,
{
    ebpf.program_mut(name)
        .ok_or_else(|| missing(name))?
        .try_into()
        .map_err(|error: ProgramError| AttachError::Object(error.to_string()))
}

/// Attaches the program to the cgroup, for as long as the link lives.
fn attach(
    ebpf: &mut Ebpf,
    name: &'static str,
    directory: &File,
    hierarchy: &Hierarchy,
    kernel: &Kernel,
) -> Result<SockOpsLink, AttachError> {
    let program: &mut SockOps = program(ebpf, name)?;
    // A link always shares the hook, and the kernel wants no flag that says so.
    program
        .attach(directory, CgroupAttachMode::Single)
        .and_then(|id| program.take_link(id))
        .map_err(|error| explain_attach(error, directory, hierarchy, kernel))
}

fn explain_attach(
    error: ProgramError,
    directory: &File,
    hierarchy: &Hierarchy,
    kernel: &Kernel,
) -> AttachError {
    let ProgramError::SyscallError(error) = error else {
        return load::explain_program(error, kernel);
    };
    match error.io_error.raw_os_error() {
        // EPERM here also means that a program without BPF_F_ALLOW_MULTI is there already.
        Some(libc::EPERM) => match hook::exclusive_owner(directory.as_fd()) {
            Some(programs) => AttachError::HookTaken {
                path: hierarchy.path().to_owned(),
                programs,
            },
            None => load::explain_refusal(error.io_error, "attach to the cgroup", kernel),
        },
        Some(libc::EBADF | libc::EINVAL) if matches!(hierarchy, Hierarchy::Chosen(_)) => {
            AttachError::Cgroup {
                path: hierarchy.path().to_owned(),
                error: io::Error::other("it is not in a cgroup v2 hierarchy"),
            }
        }
        _ => load::explain_refusal(error.io_error, "attach to the cgroup", kernel),
    }
}

/// A map by name, as the type it is used as.
fn typed<'a, T>(ebpf: &'a mut Ebpf, name: &'static str) -> Result<T, AttachError>
where
    T: TryFrom<&'a mut Map, Error = MapError>,
{
    ebpf.map_mut(name)
        .ok_or_else(|| missing(name))?
        .try_into()
        .map_err(map_error)
}

/// The same, taken out of the loaded object.
pub(super) fn taken<T>(ebpf: &mut Ebpf, name: &'static str) -> Result<T, AttachError>
where
    T: TryFrom<Map, Error = MapError>,
{
    ebpf.take_map(name)
        .ok_or_else(|| missing(name))?
        .try_into()
        .map_err(map_error)
}

/// Lets an array map's cells be mapped into this process, in `pieces` of `length` cells.
pub(super) fn mapped(
    ebpf: &Ebpf,
    name: &'static str,
    pieces: u32,
    length: u32,
) -> Result<MappedCells, AttachError> {
    let Some(Map::Array(data)) = ebpf.map(name) else {
        return Err(missing(name));
    };
    MappedCells::new(fd(data), pieces, length).map_err(|error| AttachError::Io {
        what: "map the kernel's counters",
        error,
    })
}

fn fd(data: &MapData) -> BorrowedFd<'_> {
    data.fd().as_fd()
}

/// The address in network byte order, IPv4 as `::ffff:a.b.c.d`.
pub(super) fn mapped_octets(address: SocketAddr) -> [u8; 16] {
    match address.ip() {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

fn missing(name: &str) -> AttachError {
    AttachError::Object(format!("it has no {name}"))
}

fn map_error(error: MapError) -> AttachError {
    match error {
        MapError::SyscallError(error) => AttachError::Io {
            what: "fill the kernel's maps",
            error: error.io_error,
        },
        other => AttachError::Object(other.to_string()),
    }
}
