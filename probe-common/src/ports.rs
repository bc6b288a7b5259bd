//! Which connections are watched.
//!
//! `PORTS` is an array of 64-bit words that hold eight ports each, one byte a port: 0, or a role, or
//! [`BY_ADDRESS`], or both: the address decides where it is listed, the role elsewhere.
//! An array lookup is inlined by the kernel's JIT, so a connection on any other port costs a few instructions.

use crate::no_padding;

/// Words in the `PORTS` array.
pub const PORT_WORDS: u32 = 65_536 / 8;
/// Bit of a port byte: `ADDRESSES` lists remote addresses that are watched on this port (a load balancer on 443).
pub const BY_ADDRESS: u8 = 0x80;

/// The word of `PORTS` that holds `port`.
#[inline(always)]
#[must_use]
#[allow(clippy::inline_always, reason = "the BPF target has no calls to spare")]
pub const fn word_of(port: u16) -> u32 {
    port as u32 >> 3
}

/// How far right to shift that word to get the port's byte.
#[inline(always)]
#[must_use]
#[allow(clippy::inline_always, reason = "the BPF target has no calls to spare")]
pub const fn shift_of(port: u16) -> u32 {
    (port as u32 & 7) * 8
}

/// A single watched remote address: the key of `ADDRESSES`, whose value is a role byte in a `u32`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressKey {
    /// The address in network byte order; IPv4 as `::ffff:a.b.c.d`.
    pub address: [u8; 16],
    /// The port in host byte order.
    pub port: u16,
    /// Always 0.
    pub reserved: u16,
}

no_padding!(AddressKey, [u8; 16], u16, u16);
