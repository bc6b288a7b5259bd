//! The maps. Sizes given as 1 are set by the loader; docs of keys and values are in probe-common.

use aya_ebpf::bindings::{BPF_F_MMAPABLE, BPF_F_NO_PREALLOC};
use aya_ebpf::btf_maps::{Array, HashMap, RingBuf, SkStorage, Stack};
use aya_ebpf::macros::btf_map;
use probe_common::endpoint::EndpointKey;
use probe_common::event::Event;
use probe_common::own::OwnProbe;
use probe_common::ports::{AddressKey, PORT_WORDS};
use probe_common::stats::STATS as STAT_CELLS;

use crate::flow::Flow;
use crate::reconstruct::Reconstruction;

/// Histograms and counters of every slot, mapped into user space. Flat, because a lookup by a computed index is all
/// that the verifier lets a program without `CAP_PERFMON` do.
#[btf_map]
pub(crate) static CELLS: Array<u64, 1, { BPF_F_MMAPABLE as usize }> = Array::new();

/// The observer's own counters, mapped into user space.
#[btf_map]
pub(crate) static STATS: Array<u64, { STAT_CELLS as usize }, { BPF_F_MMAPABLE as usize }> =
    Array::new();

/// Watched ports, eight to a word.
#[btf_map]
pub(crate) static PORTS: Array<u64, { PORT_WORDS as usize }> = Array::new();

/// Watched single addresses: a role each.
#[btf_map]
pub(crate) static ADDRESSES: HashMap<AddressKey, u32, 1> = HashMap::new();

/// The slot of each remote endpoint.
#[btf_map]
pub(crate) static SLOTS: HashMap<EndpointKey, u32, 1> = HashMap::new();

/// Slots that nobody has yet; user space fills it, both sides take from it.
#[btf_map]
pub(crate) static FREE_SLOTS: Stack<u32, 1> = Stack::new();

/// joinprobe's own connections by socket cookie.
#[btf_map]
pub(crate) static OWN: HashMap<u64, OwnProbe, 1> = HashMap::new();

/// Rare events on their way to user space.
#[btf_map]
pub(crate) static EVENTS: RingBuf<Event, 4096> = RingBuf::new();

/// What is remembered about each observed socket; it goes away with the socket.
#[btf_map]
pub(crate) static FLOWS: SkStorage<Flow> = SkStorage::new();

/// Samples that wait for their second half, by socket cookie. Not in `FLOWS`: before 5.11 tracing programs may not use
/// socket storage. Entries are made as they are needed, since most kernels need none.
#[btf_map]
pub(crate) static RECONSTRUCTIONS: HashMap<u64, Reconstruction, 1, { BPF_F_NO_PREALLOC as usize }> =
    HashMap::new();
