//! Flows that are found by their socket's address.
//!
//! `bpf_sk_storage_get` finds a flow in three steps through memory that is in no near cache; that was a third of what a
//! sample cost. A direct-mapped table takes one. The first socket that claims a place has it until its connection is over;
//! those that find theirs taken keep to their storage.
//!
//! A place is given away under no lock, which relies on x86's order of writes: the loader leaves the table unused elsewhere.

use core::arch::asm;
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr;

use crate::flow::Flow;
use crate::maps::FLOWS;
use crate::{cells, config};

/// A power of two.
const PLACES: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 12;

/// One socket's place. What every sample needs comes first, but for one word: the values of an array begin eight bytes
/// before a cache line (Linux 6.18).
#[repr(C)]
struct Place {
    /// How many sockets hold or want the place.
    claims: u64,
    /// The socket that has it (see [`key`]), or 0.
    key: u64,
    flow: Flow,
    reserved: [u64; 3],
}

const _: () = assert!(size_of::<Place>() == 128);

#[repr(transparent)]
struct Table(UnsafeCell<[Place; PLACES]>);

// SAFETY: a flow is used only by callbacks that hold the lock of the socket that has the place. Claims change at once, and
// keys are read and written whole.
unsafe impl Sync for Table {}

/// In a section of its own map, whose address programs know: no lookup.
static TABLE: Table = {
    // SAFETY: integers only, for which zero is a value.
    Table(UnsafeCell::new(unsafe {
        MaybeUninit::zeroed().assume_init()
    }))
};

/// The flow of a socket that has its place.
#[inline(always)]
pub(crate) fn find(socket: *mut c_void) -> Option<&'static mut Flow> {
    let key = key(socket);
    let place = place(key);
    if key_of(place) != key {
        return None;
    }
    Some(flow_of(place))
}

/// A fresh flow in the socket's place, unless another socket has that or the table is not used.
#[inline(always)]
pub(crate) fn claim(socket: *mut c_void) -> Option<&'static mut Flow> {
    if !config::has_flow_table() {
        return None;
    }
    let key = key(socket);
    let place = place(key);
    // The socket may have it already: from before it was connected once more, or from one that had its address, if
    // another observer took its callbacks away.
    if key_of(place) != key {
        if key_of(place) != 0 {
            return None;
        }
        add_claims(place, 1);
        // Of several that come at once all may give up, or one finds itself alone when the others have; never two.
        if claims_of(place) != 1 {
            add_claims(place, u64::MAX);
            return None;
        }
        set_key(place, key);
    }
    let flow = flow_of(place);
    flow.clear();
    Some(flow)
}

/// Gives the socket's place away, if it has one.
#[inline(always)]
pub(crate) fn release(socket: *mut c_void) {
    let key = key(socket);
    let place = place(key);
    if key_of(place) == key {
        set_key(place, 0);
        add_claims(place, u64::MAX);
    }
}

/// A number of the socket's own as long as it lives. The verifier takes nothing of a pointer for a number but its distance
/// from another, which here is that of a map.
#[inline(always)]
fn key(socket: *mut c_void) -> u64 {
    let mut key = socket as u64;
    // SAFETY: a subtraction.
    unsafe {
        asm!(
            "{key} -= {map}",
            key = inout(reg) key,
            map = in(reg) ptr::from_ref(&FLOWS),
            options(pure, nomem, nostack),
        );
    }
    key
}

#[inline(always)]
fn place(key: u64) -> *mut Place {
    // Fibonacci hashing: addresses are multiples of the same few numbers.
    let index = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - PLACE_BITS);
    // SAFETY: the shift leaves as many bits as there are places.
    unsafe { TABLE.0.get().cast::<Place>().add(index as usize) }
}

/// The flow of a place that the caller's socket has.
#[inline(always)]
fn flow_of(place: *mut Place) -> &'static mut Flow {
    // SAFETY: a place of the table; the callback holds the lock of the socket that has it, and is its only user.
    unsafe { &mut (*place).flow }
}

#[inline(always)]
fn key_of(place: *mut Place) -> u64 {
    // SAFETY: a place of the table.
    unsafe { (&raw const (*place).key).read_volatile() }
}

#[inline(always)]
fn set_key(place: *mut Place, key: u64) {
    // SAFETY: a place of the table; only the socket that has it gets here.
    unsafe { (&raw mut (*place).key).write_volatile(key) }
}

#[inline(always)]
fn claims_of(place: *mut Place) -> u64 {
    // SAFETY: a place of the table.
    unsafe { (&raw const (*place).claims).read_volatile() }
}

#[inline(always)]
fn add_claims(place: *mut Place, n: u64) {
    // SAFETY: a place of the table.
    cells::add_to(unsafe { &raw mut (*place).claims }, n);
}
