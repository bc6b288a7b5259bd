//! Settings that the loader writes before the program is loaded.
//!
//! They live in read-only data, so the verifier knows their values and removes the code of whatever is off.

use aya_ebpf::Global;

/// Cookie of the only network namespace that is watched; 0 watches all of them.
#[unsafe(no_mangle)]
static NETNS_COOKIE: Global<u64> = Global::new(0);

/// Whether the kernel has `bpf_get_netns_cookie` for this program type (5.15).
#[unsafe(no_mangle)]
static NETNS_COOKIE_KNOWN: Global<u8> = Global::new(0);

/// Whether only joinprobe's own connections are recorded; `PORTS` is not consulted then.
#[unsafe(no_mangle)]
static OWN_ONLY: Global<u8> = Global::new(0);

/// Whether the connections of different processes to one address are counted apart.
#[unsafe(no_mangle)]
static BY_PROCESS: Global<u8> = Global::new(0);

/// Events per second; 0 turns events off.
#[unsafe(no_mangle)]
static EVENTS_PER_SECOND: Global<u32> = Global::new(0);

/// Offset of `sock.sk_err` from the running kernel's BTF; 0 where it may not or cannot be read.
#[unsafe(no_mangle)]
static SK_ERR_OFFSET: Global<u32> = Global::new(0);

/// Offset of `task_struct.tgid` from the running kernel's BTF; 0, here and below, where tasks may not or cannot be read.
#[unsafe(no_mangle)]
static TASK_TGID_OFFSET: Global<u32> = Global::new(0);

/// Offset of `task_struct.flags`.
#[unsafe(no_mangle)]
static TASK_FLAGS_OFFSET: Global<u32> = Global::new(0);

/// Offset of `task_struct.group_leader`.
#[unsafe(no_mangle)]
static TASK_LEADER_OFFSET: Global<u32> = Global::new(0);

/// Offset of `task_struct.comm`.
#[unsafe(no_mangle)]
static TASK_COMM_OFFSET: Global<u32> = Global::new(0);

/// Whether samples that come with their callback are passed over, to compare other sources with them.
#[unsafe(no_mangle)]
static RAW_IGNORED: Global<u8> = Global::new(0);

/// Whether flows may be in the table of `table.rs`.
#[unsafe(no_mangle)]
static FLOW_TABLE: Global<u8> = Global::new(0);

/// Offset of `tcp_sock.srtt_us` from the running kernel's BTF; 0 where samples cannot be reconstructed.
#[unsafe(no_mangle)]
static SRTT_OFFSET: Global<u32> = Global::new(0);

/// Offset of `sock_common.skc_cookie` from the running kernel's BTF.
#[unsafe(no_mangle)]
static COOKIE_OFFSET: Global<u32> = Global::new(0);

/// Offsets in `struct sock_common`, which every socket begins with, for the iterators, which are not loaded without.
#[unsafe(no_mangle)]
static SKC_STATE_OFFSET: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static SKC_FAMILY_OFFSET: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static SKC_DPORT_OFFSET: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static SKC_NUM_OFFSET: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static SKC_DADDR_OFFSET: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static SKC_V6_DADDR_OFFSET: Global<u32> = Global::new(0);
/// Offsets in `struct tcp_sock`.
#[unsafe(no_mangle)]
static TOTAL_RETRANS_OFFSET: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static DATA_SEGS_OUT_OFFSET: Global<u32> = Global::new(0);
/// Offset of `bpf_prog.type`.
#[unsafe(no_mangle)]
static PROGRAM_TYPE_OFFSET: Global<u32> = Global::new(0);

/// The namespace that is watched, unless all are.
#[inline(always)]
pub(crate) fn only_netns() -> Option<u64> {
    let cookie = NETNS_COOKIE.load();
    (cookie != 0).then_some(cookie)
}

/// Whether namespaces can be told apart.
#[inline(always)]
pub(crate) fn netns_cookie_known() -> bool {
    NETNS_COOKIE_KNOWN.load() != 0
}

/// Whether only joinprobe's own connections are recorded.
#[inline(always)]
pub(crate) fn own_only() -> bool {
    OWN_ONLY.load() != 0
}

/// Whether processes are told apart.
#[inline(always)]
pub(crate) fn by_process() -> bool {
    BY_PROCESS.load() != 0
}

/// Events per second, unless events are off.
#[inline(always)]
pub(crate) fn events_per_second() -> Option<u32> {
    let limit = EVENTS_PER_SECOND.load();
    (limit != 0).then_some(limit)
}

/// Where in a `struct sock` its error is, where that may be read.
#[inline(always)]
pub(crate) fn sk_err_offset() -> Option<usize> {
    let offset = SK_ERR_OFFSET.load();
    (offset != 0).then_some(offset as usize)
}

/// Where the fields of a `struct task_struct` are.
pub(crate) struct TaskOffsets {
    /// The process's id.
    pub(crate) tgid: u32,
    /// `PF_*`.
    pub(crate) flags: u32,
    /// The process's first thread.
    pub(crate) group_leader: u32,
    /// The thread's name, 16 bytes.
    pub(crate) comm: u32,
}

/// Where a task's fields are, where they may be read.
#[inline(always)]
pub(crate) fn task_offsets() -> Option<TaskOffsets> {
    let tgid = TASK_TGID_OFFSET.load();
    (tgid != 0).then(|| TaskOffsets {
        tgid,
        flags: TASK_FLAGS_OFFSET.load(),
        group_leader: TASK_LEADER_OFFSET.load(),
        comm: TASK_COMM_OFFSET.load(),
    })
}

/// Whether samples that come with their callback are passed over.
#[inline(always)]
pub(crate) fn raw_ignored() -> bool {
    RAW_IGNORED.load() != 0
}

/// Whether flows may be in the table.
#[inline(always)]
pub(crate) fn has_flow_table() -> bool {
    FLOW_TABLE.load() != 0
}

/// Where in a `struct tcp_sock` its smoothed RTT is, where samples can be reconstructed.
#[inline(always)]
pub(crate) fn srtt_offset() -> Option<usize> {
    let offset = SRTT_OFFSET.load();
    (offset != 0).then_some(offset as usize)
}

/// Where in a `struct sock` its cookie is.
#[inline(always)]
pub(crate) fn cookie_offset() -> usize {
    COOKIE_OFFSET.load() as usize
}

/// Where the fields of a TCP socket are.
pub(crate) struct SocketOffsets {
    /// TCP state, one byte.
    pub(crate) state: u32,
    /// Address family, two bytes.
    pub(crate) family: u32,
    /// Two bytes, network byte order.
    pub(crate) remote_port: u32,
    /// Two bytes, host byte order.
    pub(crate) local_port: u32,
    /// Four bytes, network byte order.
    pub(crate) remote_ip4: u32,
    /// Sixteen bytes, network byte order.
    pub(crate) remote_ip6: u32,
    /// Segments sent again in the socket's life, four bytes.
    pub(crate) total_retrans: u32,
    /// Data segments sent, retransmissions included, four bytes.
    pub(crate) data_segs_out: u32,
}

/// Where the fields of a TCP socket are.
#[inline(always)]
pub(crate) fn socket_offsets() -> SocketOffsets {
    SocketOffsets {
        state: SKC_STATE_OFFSET.load(),
        family: SKC_FAMILY_OFFSET.load(),
        remote_port: SKC_DPORT_OFFSET.load(),
        local_port: SKC_NUM_OFFSET.load(),
        remote_ip4: SKC_DADDR_OFFSET.load(),
        remote_ip6: SKC_V6_DADDR_OFFSET.load(),
        total_retrans: TOTAL_RETRANS_OFFSET.load(),
        data_segs_out: DATA_SEGS_OUT_OFFSET.load(),
    }
}

/// Where the type of a loaded program is, four bytes.
#[inline(always)]
pub(crate) fn program_type_offset() -> u32 {
    PROGRAM_TYPE_OFFSET.load()
}
