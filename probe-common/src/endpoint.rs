//! Who a slot belongs to.

use crate::no_padding;

/// What a port serves. Zero, in a map, means "not watched".
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// etcd's client port, 2379 by default.
    EtcdClient = 1,
    /// etcd's peer port, 2380 by default.
    EtcdPeer = 2,
    /// A Kubernetes API server or the load balancer before it, 6443 by default.
    ApiServer = 3,
}

impl Role {
    /// Every role, in slot order.
    pub const ALL: [Self; 3] = [Self::EtcdClient, Self::EtcdPeer, Self::ApiServer];
}

/// Which end of a connection this host is.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// This host connected.
    Client = 0,
    /// This host accepted.
    Server = 1,
}

const ROLES: u32 = Role::ApiServer as u32;

/// Slots with a fixed meaning: for each role the client side's "other" slot, which takes connections to addresses
/// that got no slot of their own, then for each role the server side's.
pub const FIXED_SLOTS: u32 = 2 * ROLES;

/// The fixed slot of a role and side; see [`FIXED_SLOTS`].
#[inline(always)]
#[must_use]
#[allow(clippy::inline_always, reason = "the BPF target has no calls to spare")]
pub const fn fixed_slot(role: u8, side: Side) -> u32 {
    side as u32 * ROLES + role as u32 - 1
}

/// A remote endpoint: the key of the `SLOTS` map, whose value is the slot's number.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EndpointKey {
    /// Cookie of the network namespace, or 0 while only one is watched.
    pub netns: u64,
    /// The address in network byte order; IPv4 as `::ffff:a.b.c.d`.
    pub address: [u8; 16],
    /// The port in host byte order.
    pub port: u16,
    /// A [`Role`].
    pub role: u8,
    /// Always 0. Two fields and no array: the kernel side's compiler would clear an array with a call of `memset`, which
    /// the verifier refuses without `CAP_PERFMON`.
    pub reserved: u8,
    /// Always 0.
    pub reserved_word: u32,
    /// The first eight bytes, as they lie in memory, of the name of the process that called `connect()`. The name is zero
    /// from its end on, and all of it where it is unknown and while processes are not told apart.
    pub process_start: u64,
    /// The other eight.
    pub process_rest: u64,
}

no_padding!(EndpointKey, u64, [u8; 16], u16, u8, u8, u32, [u64; 2]);
