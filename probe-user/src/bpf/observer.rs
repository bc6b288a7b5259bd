//! The running observer.

use std::collections;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use aya::Ebpf;
use aya::maps::{HashMap, MapData, MapError, RingBuf, Stack};
use aya::programs::sock_ops::SockOpsLink;
use probe_common::cells::{Counter, STRIDE};
use probe_common::endpoint::{EndpointKey, FIXED_SLOTS, Role, Side, fixed_slot};
use probe_common::stats::{INTERVAL_CELL, Stat};

use super::attach;
use super::cgroup::Hierarchy;
use super::config::{ObserverConfig, Scope};
use super::earlier::Earlier;
use super::error::{AttachError, ReadError};
use super::events::EventStream;
use super::features::Features;
use super::kernel::Kernel;
use super::kernel_log::{self, KernelLog};
use super::mapped::MappedCells;
use super::own::OwnProbes;
use super::stats::{self, ObserverStats, RttSource};
use super::syscall;
use crate::measure::{Sampled, SlotCounts};
use crate::target::ProcessName;

/// Who a slot's counts are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// What answers there.
    pub role: Role,
    /// Which end this host is.
    pub side: Side,
    /// The remote address; `None` for the server side, and for what shares a slot because there were too many.
    pub remote: Option<SocketAddr>,
    /// Cookie of the network namespace; 0 while only one is observed or none can be told from another.
    pub netns: u64,
    /// The process that opened the connections; `None` where processes are not told apart or this one is not known.
    pub process: Option<ProcessName>,
}

impl Endpoint {
    /// The order in reports: client side first, by role and address, what shares a slot last.
    #[must_use]
    pub fn order(&self) -> impl Ord + use<> {
        (
            self.side,
            self.role,
            self.remote.is_none(),
            self.remote,
            self.netns,
            self.process,
        )
    }
}

/// The attached kernel side. Dropping it detaches; so does the end of the process, however it comes.
pub struct Observer {
    ebpf: Ebpf,
    /// Keeps the program attached.
    hook: Option<SockOpsLink>,
    cells: Arc<MappedCells>,
    stats: MappedCells,
    slots: HashMap<MapData, EndpointKey, u32>,
    free_slots: Stack<MapData, u32>,
    own: OwnProbes,
    hierarchy: Hierarchy,
    features: Features,
    kernel: Kernel,
    source: Option<RttSource>,
    events: Option<RingBuf<MapData>>,
    kernel_log: Option<kernel_log::Logger>,
    own_slots: u32,
    earlier: Earlier,
}

impl Drop for Observer {
    fn drop(&mut self) {
        let earlier = std::mem::replace(&mut self.earlier, Earlier::Ignored);
        if let Earlier::Adopted(release) = earlier {
            drop(self.hook.take());
            release.release(&self.stats);
        }
    }
}

impl Observer {
    /// Loads the kernel side, sets it up and attaches it.
    ///
    /// # Errors
    /// Not allowed, not supported, or the hook is another program's; the error says which and what to do.
    pub fn attach(config: &ObserverConfig) -> Result<Self, AttachError> {
        let kernel = Kernel::running();
        let mut features = Features::detect(config)?;
        let attached = attach::run(config, &mut features, &kernel)?;
        let mut ebpf = attached.ebpf;
        let slots = config.targets() + FIXED_SLOTS;
        let cells = Arc::new(attach::mapped(&ebpf, "CELLS", slots, STRIDE)?);
        syscall::return_freed_memory();
        let own = OwnProbes::new(attach::taken(&mut ebpf, "OWN")?, Arc::clone(&cells));
        let events = if config.events {
            Some(attach::taken(&mut ebpf, "EVENTS")?)
        } else {
            None
        };
        let kernel_log = if features.kernel_log {
            Some(kernel_log::logger(&mut ebpf)?)
        } else {
            None
        };
        Ok(Self {
            slots: attach::taken(&mut ebpf, "SLOTS")?,
            free_slots: attach::taken(&mut ebpf, "FREE_SLOTS")?,
            cells,
            stats: attached.stats,
            own,
            hierarchy: attached.hierarchy,
            features,
            kernel,
            source: attached.source,
            events,
            kernel_log,
            own_slots: 0,
            earlier: attached.earlier,
            hook: Some(attached.hook),
            ebpf,
        })
    }

    /// Takes a slot for an own probe; `None` when all are taken.
    pub fn new_slot(&mut self) -> Option<u32> {
        let slot = match self.free_slots.pop(0) {
            Ok(slot) => slot,
            Err(error) => {
                log::debug!("no slot for an own probe: {error}");
                return None;
            }
        };
        if let Err(error) = self.cells.ensure(slot) {
            log::debug!("an own probe's slot cannot be mapped: {error}");
            return None;
        }
        self.own_slots += 1;
        Some(slot)
    }

    /// Sets everything in a slot to 0, for a probe that is repeated.
    pub fn reset_slot(&self, slot: u32) {
        for cell in slot * STRIDE..(slot + 1) * STRIDE {
            // Only what is there: the kernel side may write at the same time.
            if self.cells.load(cell) != 0 {
                self.cells.store(cell, 0);
            }
        }
    }

    /// A handle that marks own probe connections.
    #[must_use]
    pub fn own_probes(&self) -> OwnProbes {
        self.own.clone()
    }

    /// A copy of the counts of a slot that [`Observer::new_slot`] gave.
    #[must_use]
    pub fn read_slot(&self, slot: u32) -> SlotCounts {
        // Such a slot was mapped for good, so there is nothing left that can fail.
        SlotCounts::new(self.cells.copy(slot).unwrap_or_default())
    }

    /// Everything seen so far on watched ports, one entry per remote address (client side; where they are told apart, per
    /// address and process) or role (server side), plus one per role for connections that found no slot. Own probes are
    /// not among them.
    ///
    /// # Errors
    /// The table of slots or an address's counts cannot be read.
    pub fn endpoints(&self) -> Result<Vec<(Endpoint, SlotCounts)>, ReadError> {
        let mut found = Vec::new();
        self.each_endpoint(|endpoint, counts| found.push((endpoint, counts)))?;
        found.sort_by_key(|(endpoint, _)| endpoint.order());
        Ok(found)
    }

    /// Shows every entry of [`Observer::endpoints`] to `visit`, in no order, one at a time: each copy takes 100 KiB.
    ///
    /// # Errors
    /// The table of slots or an address's counts cannot be read.
    pub fn each_endpoint(
        &self,
        mut visit: impl FnMut(Endpoint, SlotCounts),
    ) -> Result<(), ReadError> {
        for entry in &self.slots {
            let (key, slot) = entry.map_err(slots_error)?;
            if let Some(endpoint) = endpoint_of(&key) {
                visit(endpoint, self.copy_slot(slot)?);
            }
        }
        for role in Role::ALL {
            for side in [Side::Client, Side::Server] {
                let slot = fixed_slot(role as u8, side);
                let counts = self.copy_slot(slot)?;
                if counts.counter(Counter::Opened) + counts.counter(Counter::Adopted) > 0 {
                    let endpoint = Endpoint {
                        role,
                        side,
                        remote: None,
                        netns: 0,
                        process: None,
                    };
                    visit(endpoint, counts);
                }
            }
        }
        Ok(())
    }

    fn copy_slot(&self, slot: u32) -> Result<SlotCounts, ReadError> {
        let cells = self.cells.copy(slot).map_err(|error| ReadError {
            what: "read an address's counts",
            error,
        })?;
        Ok(SlotCounts::new(cells))
    }

    /// Looks at the connections that were there before and are sampled, if any: some milliseconds, and what it finds counts
    /// in the running interval.
    pub fn look_at_earlier(&mut self) {
        self.earlier.look();
    }

    /// What sampling has found so far at each endpoint; `None` on kernels where those connections are adopted instead.
    #[must_use]
    pub fn sampled(&self) -> Option<&collections::HashMap<Endpoint, Sampled>> {
        self.earlier.sampled()
    }

    /// Begins the next report interval: the per-connection minimum (`Measure::SegmentMin`) starts anew.
    pub fn next_interval(&self) {
        let number = self.stats.load(INTERVAL_CELL);
        // The kernel compares 32 bits; 0 would be "never".
        let next = if number >= u64::from(u32::MAX) {
            1
        } else {
            number + 1
        };
        self.stats.store(INTERVAL_CELL, next);
    }

    /// The observer's own counters.
    #[must_use]
    pub fn stats(&self) -> ObserverStats {
        let endpoints = self.slots.keys().filter_map(Result::ok).count();
        let endpoints = u32::try_from(endpoints).unwrap_or(u32::MAX);
        stats::read(&self.stats, self.own_slots.saturating_add(endpoints))
    }

    /// Events left out by the rate limit so far; [`Observer::stats`] has the rest.
    #[must_use]
    pub fn events_suppressed(&self) -> u64 {
        self.stats.load(Stat::EventsSuppressed as u32)
    }

    /// Where RTT samples come from; `None` if that shows only with the first one, which has not come yet.
    #[must_use]
    pub fn rtt_source(&self) -> Option<RttSource> {
        stats::source(&self.stats).or(self.source)
    }

    /// Which cgroup hierarchy the observer is attached to.
    #[must_use]
    pub fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    /// The network namespaces that are really observed; before 5.15 always all.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.features.scope
    }

    /// What is lost on this host, one sentence each: for want of rights, or because the kernel cannot do it.
    #[must_use]
    pub fn limitations(&self) -> &[String] {
        &self.features.limitations
    }

    /// The running kernel's release, as `uname -r` says.
    #[must_use]
    pub fn kernel_release(&self) -> &str {
        &self.kernel.release
    }

    /// The stream of events; `None` if they are off or were taken before. Must be called inside the runtime.
    ///
    /// # Errors
    /// The runtime cannot wait for the ring buffer.
    pub fn events(&mut self) -> io::Result<Option<EventStream>> {
        self.events.take().map(EventStream::new).transpose()
    }

    /// The kernel side's debug lines; `None` if they are off or were taken before. Must be called inside the runtime.
    ///
    /// # Errors
    /// The runtime cannot wait for the ring buffer.
    pub fn kernel_log(&mut self) -> io::Result<Option<KernelLog>> {
        self.kernel_log.take().map(KernelLog::new).transpose()
    }

    /// Ids of the loaded programs, for tests and diagnostics.
    #[must_use]
    pub fn program_ids(&self) -> Vec<u32> {
        self.ebpf
            .programs()
            .filter_map(|(_, program)| program.info().ok())
            .map(|info| info.id())
            .collect()
    }
}

fn endpoint_of(key: &EndpointKey) -> Option<Endpoint> {
    let role = Role::ALL.into_iter().find(|role| *role as u8 == key.role)?;
    let address = Ipv6Addr::from(key.address);
    let address = address
        .to_ipv4_mapped()
        .map_or(IpAddr::V6(address), IpAddr::V4);
    Some(Endpoint {
        role,
        side: Side::Client,
        remote: Some(SocketAddr::new(address, key.port)),
        netns: key.netns,
        process: ProcessName::new(bytes_of([key.process_start, key.process_rest])),
    })
}

/// Two words as the 16 bytes that lie in memory.
fn bytes_of(words: [u64; 2]) -> [u8; 16] {
    let [first, second] = words.map(u64::to_ne_bytes);
    std::array::from_fn(|index| {
        if index < 8 {
            first[index]
        } else {
            second[index - 8]
        }
    })
}

fn slots_error(error: MapError) -> ReadError {
    ReadError {
        what: "read the table of observed addresses",
        error: match error {
            MapError::SyscallError(error) => error.io_error,
            other => io::Error::other(other.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_as_they_were() {
        for text in ["10.1.0.2:2379", "[fd00::2]:2380"] {
            let remote: SocketAddr = text.parse().unwrap();
            let key = EndpointKey {
                netns: 7,
                address: attach::mapped_octets(remote),
                port: remote.port(),
                role: Role::EtcdPeer as u8,
                reserved: 0,
                reserved_word: 0,
                process_start: u64::from_ne_bytes(*b"kube-api"),
                process_rest: u64::from_ne_bytes(*b"server\0\0"),
            };
            let endpoint = endpoint_of(&key).unwrap();
            assert_eq!(endpoint.remote, Some(remote));
            assert_eq!(endpoint.role, Role::EtcdPeer);
            assert_eq!(endpoint.netns, 7);
            assert_eq!(endpoint.process.unwrap().to_string(), "kube-apiserver");
        }
    }
}
