//! What is remembered about one socket.

use core::ptr;

use aya_ebpf::bindings::BPF_SK_STORAGE_GET_F_CREATE;
use aya_ebpf::helpers::generated::{bpf_sk_storage_delete, bpf_sk_storage_get};
use probe_common::cells::Counter;
use probe_common::stats::Stat;

use crate::cells;
use crate::context::Context;
use crate::maps::FLOWS;
use crate::sample::Minimum;

/// Nothing happened yet: what the kernel's zeroed storage says.
pub(crate) const FRESH: u8 = 0;
/// `connect()` was called.
pub(crate) const CONNECTING: u8 = 1;
/// The handshake is done.
pub(crate) const ESTABLISHED: u8 = 2;
/// Failed or closed.
pub(crate) const OVER: u8 = 3;

/// The state of one observed socket. All zero means fresh. Callbacks of a socket hold its lock, so nothing here is
/// written by two CPUs at once.
#[repr(C)]
pub(crate) struct Flow {
    /// `connect()`, or for the server side the end of the handshake; nanoseconds of `bpf_ktime_get_ns`.
    pub(crate) started_ns: u64,
    /// End of the handshake; same clock.
    pub(crate) established_ns: u64,
    /// The socket's cookie if it is one of joinprobe's own probes, else 0.
    pub(crate) own_cookie: u64,
    /// The slot that counts it.
    pub(crate) slot: u32,
    /// `total_retrans` as counted so far.
    pub(crate) total_retrans: u32,
    /// `data_segs_out` as counted so far.
    pub(crate) segments_out: u32,
    /// SYNs (server side: SYN-ACKs) sent again.
    pub(crate) syn_retransmits: u32,
    /// The smallest sample so far.
    pub(crate) minimum: Minimum,
    /// [`FRESH`] to [`OVER`].
    pub(crate) stage: u8,
    /// A `Role`.
    pub(crate) role: u8,
    /// A `Side`.
    pub(crate) side: u8,
    /// 1 while the handshake's sample is still to come (TCP fast open).
    pub(crate) handshake_pending: u8,
    /// The id (tgid) of the process that called `connect()`; 0 where unknown.
    pub(crate) pid: u32,
    /// Its name as it lies in memory; 0 where unknown.
    pub(crate) comm: [u64; 2],
}

/// The state of the callback's socket, if it is observed.
#[inline(always)]
pub(crate) fn find(ctx: Context) -> Option<&'static mut Flow> {
    let socket = ctx.socket()?;
    // SAFETY: map and socket are what the helper asks for; the value outlives the callback, which holds the socket's
    // lock and is its only user.
    unsafe {
        bpf_sk_storage_get(map(), socket.cast(), ptr::null_mut(), 0)
            .cast::<Flow>()
            .as_mut()
    }
}

/// A fresh state for the callback's socket.
#[inline(always)]
pub(crate) fn start(ctx: Context) -> Option<&'static mut Flow> {
    let flow = create(ctx)?;
    if flow.stage == FRESH {
        return Some(flow);
    }
    // A socket that is connected a second time. Zeroing the state here would be a call of `memset`, whose pointer
    // arithmetic the verifier refuses without CAP_PERFMON; the kernel zeroes what it makes.
    forget(ctx);
    create(ctx)
}

#[inline(always)]
fn create(ctx: Context) -> Option<&'static mut Flow> {
    let socket = ctx.socket()?;
    let flags = u64::from(BPF_SK_STORAGE_GET_F_CREATE);
    // SAFETY: as in `find`.
    let flow = unsafe {
        bpf_sk_storage_get(map(), socket.cast(), ptr::null_mut(), flags)
            .cast::<Flow>()
            .as_mut()
    };
    if flow.is_none() {
        cells::stat(Stat::FlowsUntracked);
    }
    flow
}

/// Forgets the callback's socket. Its callback flags stay: another observer may live by them.
#[inline(always)]
pub(crate) fn forget(ctx: Context) {
    if let Some(socket) = ctx.socket() {
        // SAFETY: map and socket are what the helper asks for; that there is nothing to delete is no error.
        unsafe { bpf_sk_storage_delete(map(), socket.cast()) };
    }
}

#[inline(always)]
fn map() -> *mut core::ffi::c_void {
    ptr::from_ref(&FLOWS).cast_mut().cast()
}

impl Flow {
    /// Counts what was sent again since the last look; before ESTABLISHED that can only be SYNs.
    #[inline(always)]
    pub(crate) fn count_retransmits(&mut self, ctx: Context) {
        let now = ctx.total_retrans();
        let more = now.wrapping_sub(self.total_retrans);
        if more == 0 {
            return;
        }
        self.total_retrans = now;
        if self.stage == ESTABLISHED {
            cells::count(self.slot, Counter::Retransmits, u64::from(more));
        } else {
            self.syn_retransmits = self.syn_retransmits.wrapping_add(more);
            cells::count(self.slot, Counter::SynRetransmits, u64::from(more));
        }
    }

    /// Counts the data segments sent since the last look, if there are at least `at_least` of them.
    #[inline(always)]
    pub(crate) fn count_segments(&mut self, ctx: Context, at_least: u32) {
        let now = ctx.data_segs_out();
        let more = now.wrapping_sub(self.segments_out);
        if more != 0 && more >= at_least {
            self.segments_out = now;
            cells::count(self.slot, Counter::SegmentsOut, u64::from(more));
        }
    }
}
