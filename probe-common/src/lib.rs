//! Types that joinprobe's kernel side writes and its user side reads.
//!
//! Everything that crosses the boundary is `repr(C)`, free of padding (checked at compile time) and made of integers
//! in host byte order, unless a field says otherwise.
#![no_std]
#![allow(
    unsafe_code,
    reason = "the Pod marker of the types that travel through maps is an unsafe trait"
)]

pub mod bucket;
pub mod cells;
pub mod endpoint;
pub mod event;
pub mod own;
pub mod ports;
pub mod stats;

/// Checks at compile time that a type's size is the sum of its fields, so that no padding byte crosses the boundary.
macro_rules! no_padding {
    ($type:ty, $($field:ty),+ $(,)?) => {
        const _: () = assert!(size_of::<$type>() == 0 $(+ size_of::<$field>())+);
        #[cfg(feature = "user")]
        // SAFETY: the type is repr(C), Copy, made of integers only and, by the assertion above, has no padding.
        unsafe impl aya::Pod for $type {}
    };
}
pub(crate) use no_padding;
