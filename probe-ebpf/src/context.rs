//! Reads of the `sock_ops` context.
//!
//! Every read is a load instruction of its own at a fixed offset. The verifier refuses anything else, and LLVM, left to
//! itself, merges two neighbouring 32-bit fields into one 64-bit load, or two branches' loads into one through a
//! computed pointer (volatile reads do not keep it from the latter).

use core::arch::asm;
use core::mem::offset_of;

use aya_ebpf::bindings::{bpf_sock, bpf_sock_ops};
use aya_ebpf::helpers::generated::{
    bpf_get_netns_cookie, bpf_get_socket_cookie, bpf_load_hdr_opt, bpf_sock_ops_cb_flags_set,
};

const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
const ENOMSG: i64 = 42;

/// What a program may do. Each variant is a program of its own: without `CAP_PERFMON` the verifier also follows branches
/// that settings make dead, as a processor that guesses wrong would, and refuses what it finds there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rights {
    /// Everything, where settings allow it.
    All,
    /// No reads of kernel memory, no log, and no arithmetic with pointers.
    Plain,
    /// As plain, and no name of a network namespace (`bpf_get_netns_cookie` is there since 5.15).
    Least,
}

/// The context of one callback.
#[derive(Clone, Copy)]
pub(crate) struct Context(*mut bpf_sock_ops, Rights);

/// Loads the field of this type at a fixed offset of the context.
macro_rules! load {
    ($ctx:expr, $type:literal, $offset:expr) => {{
        let value: u64;
        // SAFETY: the kernel hands a valid context to the program, and the verifier checks offset and size.
        unsafe {
            asm!(
                concat!("{value} = *(", $type, " *)({ctx} + {offset})"),
                // Not the context's register: for a load into that the kernel has to save another one in memory first.
                value = out(reg) value,
                ctx = in(reg) $ctx.0,
                offset = const $offset,
                options(nostack, readonly, preserves_flags),
            );
        }
        value
    }};
}

macro_rules! fields {
    ($type:ty: $($(#[$doc:meta])* $name:ident = $field:ident $(+ $more:literal)?;)+) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name(self) -> $type {
            let value = load!(self, "u32", offset_of!(bpf_sock_ops, $field) $(+ $more)?);
            // SAFETY: a load of 32 bits clears the upper half. LLVM does not know, and would clear it again.
            unsafe { core::hint::assert_unchecked(value <= u32::MAX as u64) };
            value as $type
        }
    )+};
}

impl Context {
    /// Wraps the pointer the kernel passed.
    #[inline(always)]
    pub(crate) fn new(ops: *mut bpf_sock_ops, rights: Rights) -> Self {
        Self(ops, rights)
    }

    /// Whether kernel memory may be read, and the log written.
    #[inline(always)]
    pub(crate) fn may_read_kernel(self) -> bool {
        matches!(self.1, Rights::All)
    }

    /// Whether pointers may be computed with.
    #[inline(always)]
    pub(crate) fn may_use_pointers(self) -> bool {
        matches!(self.1, Rights::All)
    }

    /// Whether the network namespace may be asked for.
    #[inline(always)]
    pub(crate) fn may_name_netns(self) -> bool {
        !matches!(self.1, Rights::Least)
    }

    fields! { u32:
        /// Which callback this is (`BPF_SOCK_OPS_*`).
        op = op;
        /// Callback flags that any observer has set on the socket.
        cb_flags = bpf_sock_ops_cb_flags;
        /// TCP state before the change that a state callback announces.
        state = state;
        /// Segments sent again in the socket's life, SYNs included.
        total_retrans = total_retrans;
        /// Sequence number of the next byte to be sent.
        snd_nxt = snd_nxt;
        /// Sequence number of the first byte that is not acknowledged.
        snd_una = snd_una;
        family = family;
        remote_ip4 = remote_ip4;
        remote_ip6_0 = remote_ip6;
        remote_ip6_1 = remote_ip6 + 4;
        remote_ip6_2 = remote_ip6 + 8;
        remote_ip6_3 = remote_ip6 + 12;
        local_port_word = local_port;
        remote_port_word = remote_port;
    }

    // Of 32 bits too, but what is computed with them for each sample is, in 64: after each step in 32 bits LLVM would have
    // to clear the upper half of the register.
    fields! { u64:
        /// Smoothed RTT, microseconds x 8.
        srtt_us = srtt_us;
        /// Data segments sent, retransmissions included.
        data_segs_out = data_segs_out;
        /// Argument 0 of the callback. It shares its storage with `reply`: a program earlier in the chain may have
        /// overwritten it.
        arg0 = __bindgen_anon_1;
        /// Argument 1 of the callback.
        arg1 = __bindgen_anon_1 + 4;
    }

    /// The socket; `None` for a request socket.
    #[inline(always)]
    pub(crate) fn socket(self) -> Option<*mut bpf_sock> {
        let socket =
            load!(self, "u64", offset_of!(bpf_sock_ops, __bindgen_anon_2)) as *mut bpf_sock;
        (!socket.is_null()).then_some(socket)
    }

    /// Local port, host byte order.
    #[inline(always)]
    pub(crate) fn local_port(self) -> u16 {
        self.local_port_word() as u16
    }

    /// Remote port, host byte order; the context has it in network order.
    #[inline(always)]
    pub(crate) fn remote_port(self) -> u16 {
        u32::from_be(self.remote_port_word()) as u16
    }

    /// The remote address in network byte order, IPv4 as `::ffff:a.b.c.d`; `None` for other families.
    ///
    /// An IPv6 socket to an IPv4 address already has the mapped form, and for real IPv6 `remote_ip4` is junk.
    #[inline(always)]
    pub(crate) fn remote_address(self) -> Option<[u8; 16]> {
        let words: [u32; 4] = match self.family() {
            AF_INET => [0, 0, u32::to_be(0xffff), self.remote_ip4()],
            AF_INET6 => [
                self.remote_ip6_0(),
                self.remote_ip6_1(),
                self.remote_ip6_2(),
                self.remote_ip6_3(),
            ],
            _ => return None,
        };
        // SAFETY: both are 16 bytes without padding, and any bit pattern is a valid byte.
        Some(unsafe { core::mem::transmute::<[u32; 4], [u8; 16]>(words) })
    }

    /// The same in two words, as it lies in memory.
    #[inline(always)]
    pub(crate) fn remote_words(self) -> Option<[u64; 2]> {
        let address = self.remote_address()?;
        // SAFETY: both are 16 bytes without padding, and any bit pattern is a valid number.
        Some(unsafe { core::mem::transmute::<[u8; 16], [u64; 2]>(address) })
    }

    /// The socket's cookie, unique on this host as long as it runs.
    #[inline(always)]
    pub(crate) fn cookie(self) -> u64 {
        // SAFETY: the helper takes this program type's context.
        unsafe { bpf_get_socket_cookie(self.0.cast()) }
    }

    /// The cookie of the socket's network namespace; only where the configuration says that the helper exists.
    #[inline(always)]
    pub(crate) fn netns_cookie(self) -> u64 {
        // SAFETY: the helper takes this program type's context.
        unsafe { bpf_get_netns_cookie(self.0.cast()) }
    }

    /// Whether the segment that established the connection came without a TCP timestamp, so that none of its segments has
    /// one. Only in the callbacks of that moment; where it cannot be told, `false`.
    #[inline(always)]
    pub(crate) fn lacks_timestamps(self) -> bool {
        // `TCPOPT_TIMESTAMP` and `TCPOLEN_TIMESTAMP` (include/net/tcp.h); the kernel puts the option in its place.
        // Whole words: zeroing bytes would be a call of `memset`, which the verifier refuses without CAP_PERFMON.
        let mut option = [u64::from_ne_bytes([8, 0, 0, 0, 0, 0, 0, 0]), 0];
        // SAFETY: the helper takes this program type's context, and writes no more than it is told to.
        let length = unsafe { bpf_load_hdr_opt(self.0, option.as_mut_ptr().cast(), 10, 0) };
        length == -ENOMSG
    }

    /// Adds to the socket's callback flags; those of other observers stay.
    #[inline(always)]
    pub(crate) fn add_cb_flags(self, flags: u32) {
        let present = self.cb_flags();
        if present & flags != flags {
            // SAFETY: the helper takes this program type's context. It fails only for request sockets.
            unsafe { bpf_sock_ops_cb_flags_set(self.0, (present | flags).cast_signed()) };
        }
    }
}
