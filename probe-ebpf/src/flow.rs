//! What is remembered about one socket.

use core::ffi::c_void;
use core::hint::cold_path;
use core::ptr;

use aya_ebpf::bindings::BPF_SK_STORAGE_GET_F_CREATE;
use aya_ebpf::helpers::generated::{bpf_sk_storage_delete, bpf_sk_storage_get};
use probe_common::cells::Counter;
use probe_common::stats::Stat;

use crate::cells;
use crate::connect::CALLBACKS;
use crate::context::Context;
use crate::maps::FLOWS;
use crate::sample::Minimum;
use crate::table;

/// Nothing happened yet: what the kernel's zeroed storage says.
pub(crate) const FRESH: u8 = 0;
/// `connect()` was called.
pub(crate) const CONNECTING: u8 = 1;
/// The handshake is done.
pub(crate) const ESTABLISHED: u8 = 2;
/// Failed or closed.
pub(crate) const OVER: u8 = 3;

/// All that was sent again is acknowledged.
pub(crate) const NOTHING: u8 = 0;
/// Something below [`Flow::resent_below`] is not.
pub(crate) const BELOW: u8 = 1;
/// Something may not be, and nobody knows which.
pub(crate) const SOMETHING: u8 = 2;

/// [`Flow::samples`] of a connection that is not joinprobe's own, where samples come with their callback, while none of
/// them may be of a retransmission.
pub(crate) const PLAIN: u8 = 1;

/// How many segments of a connection may wait to be counted.
const SEGMENTS_UNCOUNTED: u32 = 32;

/// The state of one observed socket. All zero means fresh. Callbacks of a socket hold its lock, so nothing here is
/// written by two CPUs at once. What a plain sample needs comes first, within one cache line.
#[repr(C)]
pub(crate) struct Flow {
    /// The slot that counts it.
    pub(crate) slot: u32,
    /// `data_segs_out` from which on it is to be counted again.
    pub(crate) segments_due: u32,
    /// The smallest sample so far.
    pub(crate) minimum: Minimum,
    /// [`PLAIN`], or 0: what every sample would otherwise have to find out.
    pub(crate) samples: u8,
    /// [`FRESH`] to [`OVER`].
    pub(crate) stage: u8,
    /// A `Role`.
    pub(crate) role: u8,
    /// A `Side`.
    pub(crate) side: u8,
    /// 1 while the handshake's sample is still to come (TCP fast open).
    pub(crate) handshake_pending: u8,
    /// Whether the next acknowledgement may be of something that was sent again: [`NOTHING`] to [`SOMETHING`].
    pub(crate) resent: u8,
    /// 1 if no segment has a TCP timestamp.
    pub(crate) no_timestamps: u8,
    /// 1 if the connection was there before the observer.
    pub(crate) adopted: u8,
    /// `data_segs_out` as counted so far.
    pub(crate) segments_out: u32,
    /// `total_retrans` as counted so far.
    pub(crate) total_retrans: u32,
    /// What was sent again lies below this sequence number, if `resent` says so.
    pub(crate) resent_below: u32,
    /// SYNs (server side: SYN-ACKs) sent again.
    pub(crate) syn_retransmits: u32,
    /// The socket's cookie if it is one of joinprobe's own probes, else 0.
    pub(crate) own_cookie: u64,
    /// `connect()`, or for the server side the end of the handshake; nanoseconds of `bpf_ktime_get_ns`.
    pub(crate) started_ns: u64,
    /// End of the handshake; same clock.
    pub(crate) established_ns: u64,
    /// The id (tgid) of the process that called `connect()`; 0 where unknown.
    pub(crate) pid: u32,
    /// Callback flags that were not set before this observer set them.
    pub(crate) added_flags: u32,
    /// The name of that process as it lies in memory; 0 where unknown.
    pub(crate) comm: [u64; 2],
}

/// The state of the callback's socket, if it is observed.
#[inline(always)]
pub(crate) fn find(ctx: Context) -> Option<&'static mut Flow> {
    let socket = ctx.socket()?.cast();
    if ctx.may_use_pointers()
        && let Some(flow) = table::find(socket)
    {
        return Some(flow);
    }
    stored(socket, false)
}

/// A fresh state for the callback's socket.
#[inline(always)]
pub(crate) fn start(ctx: Context) -> Option<&'static mut Flow> {
    let socket = ctx.socket()?.cast();
    if ctx.may_use_pointers()
        && let Some(flow) = table::claim(socket)
    {
        return Some(flow);
    }
    let flow = stored(socket, true)?;
    if flow.stage == FRESH {
        return Some(flow);
    }
    // A socket that is connected a second time. Zeroing the state here would be a call of `memset`, whose pointer
    // arithmetic the verifier refuses without CAP_PERFMON; the kernel zeroes what it makes.
    forget_stored(socket);
    stored(socket, true)
}

/// Forgets the callback's socket. Its callback flags stay: another observer may live by them.
#[inline(always)]
pub(crate) fn forget(ctx: Context) {
    leave_table(ctx);
    if let Some(socket) = ctx.socket() {
        forget_stored(socket.cast());
    }
}

/// Forgets the callback's socket if it is in the table. Storage goes away with the socket; a place in the table does not.
#[inline(always)]
pub(crate) fn leave_table(ctx: Context) {
    if ctx.may_use_pointers()
        && let Some(socket) = ctx.socket()
    {
        table::release(socket.cast());
    }
}

/// The state of a socket whose lock is held, if it is observed.
#[inline(always)]
pub(crate) fn of_socket(socket: *mut c_void) -> Option<&'static mut Flow> {
    table::find(socket).or_else(|| stored(socket, false))
}

/// A fresh state for a socket whose lock is held and that is not observed.
#[inline(always)]
pub(crate) fn start_of_socket(socket: *mut c_void) -> Option<&'static mut Flow> {
    table::claim(socket).or_else(|| stored(socket, true))
}

/// Forgets a socket whose lock is held.
#[inline(always)]
pub(crate) fn forget_socket(socket: *mut c_void) {
    table::release(socket);
    forget_stored(socket);
}

/// The state in the socket's storage; if there is none, a fresh one if `create` says so.
#[inline(always)]
fn stored(socket: *mut c_void, create: bool) -> Option<&'static mut Flow> {
    let flags = if create {
        u64::from(BPF_SK_STORAGE_GET_F_CREATE)
    } else {
        0
    };
    // SAFETY: map and socket are what the helper asks for; the value outlives the program, which holds the socket's lock
    // and is its only user.
    let flow = unsafe {
        bpf_sk_storage_get(map(), socket, ptr::null_mut(), flags)
            .cast::<Flow>()
            .as_mut()
    };
    if create && flow.is_none() {
        cells::stat(Stat::FlowsUntracked);
    }
    flow
}

#[inline(always)]
fn forget_stored(socket: *mut c_void) {
    // SAFETY: map and socket are what the helper asks for; that there is nothing to delete is no error.
    unsafe { bpf_sk_storage_delete(map(), socket) };
}

#[inline(always)]
fn map() -> *mut c_void {
    ptr::from_ref(&FLOWS).cast_mut().cast()
}

impl Flow {
    /// Makes it fresh.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        let words = ptr::from_mut(self).cast::<u64>();
        let mut word = 0;
        while word < size_of::<Self>() / size_of::<u64>() {
            // Volatile, or LLVM makes a call of `memset` out of it.
            // SAFETY: within the state, which is whole words of integers.
            unsafe { words.add(word).write_volatile(0) };
            word += 1;
        }
    }

    /// The handshake is done: samples count from here on.
    #[inline(always)]
    pub(crate) fn establish(&mut self) {
        self.stage = ESTABLISHED;
    }

    /// A sample came with its callback: so will all others.
    #[inline(always)]
    pub(crate) fn expect_plain_samples(&mut self) {
        if self.own_cookie == 0 && self.resent == NOTHING {
            self.samples = PLAIN;
        }
    }

    /// The connection is over: no sample counts any more.
    #[inline(always)]
    pub(crate) fn end(&mut self) {
        self.stage = OVER;
    }

    /// Asks for the callbacks; those that other observers asked for stay.
    #[inline(always)]
    pub(crate) fn request_callbacks(&mut self, ctx: Context) {
        self.added_flags |= CALLBACKS & !ctx.cb_flags();
        ctx.add_cb_flags(CALLBACKS);
    }

    /// Counts what was sent again since the last look; before the handshake is done that can only be SYNs.
    #[inline(always)]
    pub(crate) fn count_retransmits(&mut self, ctx: Context) {
        let now = ctx.total_retrans();
        let more = now.wrapping_sub(self.total_retrans);
        if more == 0 {
            return;
        }
        self.total_retrans = now;
        self.resent_below = ctx.snd_nxt();
        self.resent = BELOW;
        self.samples = 0;
        if self.stage == ESTABLISHED && self.handshake_pending == 0 {
            cells::count(self.slot, Counter::Retransmits, u64::from(more));
        } else {
            self.syn_retransmits = self.syn_retransmits.wrapping_add(more);
            cells::count(self.slot, Counter::SynRetransmits, u64::from(more));
        }
    }

    /// Whether the sample at hand may be one of a segment that was sent again: one that was is acknowledged with this sample
    /// or later.
    #[inline(always)]
    pub(crate) fn may_sample_retransmission(&mut self, ctx: Context) -> bool {
        if self.resent == NOTHING {
            return false;
        }
        cold_path();
        if self.resent == SOMETHING {
            // Whatever it was, it was sent before.
            self.resent_below = ctx.snd_nxt();
            self.resent = BELOW;
        }
        // The acknowledgement that the sample is of is counted in already (`tcp_ack` in net/ipv4/tcp_input.c).
        let beyond = ctx.snd_una().wrapping_sub(self.resent_below);
        if beyond.cast_signed() >= 0 {
            self.resent = NOTHING;
        }
        self.no_timestamps == 0
    }

    /// Counts the data segments sent since the last look.
    #[inline(always)]
    pub(crate) fn count_segments(&mut self, ctx: Context) {
        let now = ctx.data_segs_out() as u32;
        // The kernel's number has 32 bits and starts again.
        let more = now.wrapping_sub(self.segments_out);
        let eighth = now >> 3;
        let until_due = if eighth > SEGMENTS_UNCOUNTED {
            SEGMENTS_UNCOUNTED
        } else {
            // Not 0.
            eighth | 1
        };
        self.segments_due = now.wrapping_add(until_due);
        if more != 0 {
            self.segments_out = now;
            cells::count(self.slot, Counter::SegmentsOut, u64::from(more));
        }
    }

    /// Whether there are enough of them to count, so that what is not counted yet stays below an eighth and below
    /// [`SEGMENTS_UNCOUNTED`]: counting them with every sample would be a second locked addition.
    #[inline(always)]
    pub(crate) fn are_segments_due(&self, ctx: Context) -> bool {
        ctx.data_segs_out() >= u64::from(self.segments_due)
    }
}
