//! Counting: one lookup (which the JIT inlines) and one locked addition.

use core::arch::asm;

use probe_common::bucket;
use probe_common::cells::{Counter, Measure, bucket_cell, counter_cell};
use probe_common::stats::{INTERVAL_CELL, Stat};

use crate::maps::{CELLS, STATS};

/// Adds to a map value that other CPUs add to as well.
#[inline(always)]
pub(crate) fn add_to(cell: *mut u64, n: u64) {
    // `lock xadd` without the old value: there is no fetching form before 5.12, and the target has no `fetch_add`.
    // SAFETY: the pointer is that of a live map value, aligned and eight bytes wide; the verifier checks it.
    unsafe { asm!("lock *(u64 *)({cell} + 0) += {n}", cell = in(reg) cell, n = in(reg) n) }
}

#[inline(always)]
fn add_to_cell(cell: u32, n: u64) {
    if let Some(cell) = CELLS.get_ptr_mut(cell) {
        add_to(cell, n);
    }
}

/// Counts a sample of `measure`, in microseconds.
#[inline(always)]
pub(crate) fn record(slot: u32, measure: Measure, value_us: u64) {
    add_to_bucket(slot, measure, bucket::index_of(value_us), 1);
}

/// Counts one more (or, with `u64::MAX`, one less) in a bucket.
#[inline(always)]
pub(crate) fn add_to_bucket(slot: u32, measure: Measure, index: u64, n: u64) {
    add_to_cell(bucket_cell(slot, measure, index as u32), n);
}

/// Adds to a counter.
#[inline(always)]
pub(crate) fn count(slot: u32, counter: Counter, n: u64) {
    add_to_cell(counter_cell(slot, counter), n);
}

/// Sets a counter that holds a value.
#[inline(always)]
pub(crate) fn set(slot: u32, counter: Counter, value: u64) {
    if let Some(cell) = CELLS.get_ptr_mut(counter_cell(slot, counter)) {
        // SAFETY: a live map value; only this slot's one probe connection writes it.
        unsafe { cell.write_volatile(value) };
    }
}

/// Adds one to a counter of the observer's own.
#[inline(always)]
pub(crate) fn stat(stat: Stat) {
    add_to_stat(stat as u32, 1);
}

/// Adds to a cell of `STATS`.
#[inline(always)]
pub(crate) fn add_to_stat(cell: u32, n: u64) {
    if let Some(cell) = STATS.get_ptr_mut(cell) {
        add_to(cell, n);
    }
}

/// Notes that something was seen, without a locked addition each time.
#[inline(always)]
pub(crate) fn note(stat: Stat) {
    if stat_cell(stat as u32) == 0 {
        set_stat(stat as u32, 1);
    }
}

/// Reads a cell of `STATS`.
#[inline(always)]
pub(crate) fn stat_cell(cell: u32) -> u64 {
    match STATS.get_ptr(cell) {
        // SAFETY: a live map value, aligned; other writers write it whole.
        Some(cell) => unsafe { cell.read_volatile() },
        None => 0,
    }
}

/// Writes a cell of `STATS`.
#[inline(always)]
pub(crate) fn set_stat(cell: u32, value: u64) {
    if let Some(cell) = STATS.get_ptr_mut(cell) {
        // SAFETY: a live map value, aligned; readers read it whole.
        unsafe { cell.write_volatile(value) };
    }
}

/// The number of the running report interval.
#[inline(always)]
pub(crate) fn interval() -> u64 {
    stat_cell(INTERVAL_CELL)
}
