//! The kernel side's counterpart: loads, attaches, reads maps. The only module that names aya.
#![allow(
    unsafe_code,
    reason = "maps are shared with the kernel; each block says why it is sound"
)]

mod socket;

pub use socket::unsent_and_unacked;
