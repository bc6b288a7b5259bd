//! joinprobe's kernel side: a `sock_ops` program that lets the kernel's own RTT measurements be counted, and beside it a
//! program that completes them where the kernel does not hand them over, and one that finds out whether it does.
//!
//! It looks and never acts: it writes no `reply`, clears no callback flag and always returns 1, because other programs
//! share the hook and the sockets.
#![no_std]
#![no_main]
#![feature(asm_experimental_arch)]
#![allow(
    unsafe_code,
    reason = "the kernel's context, maps and helpers are raw pointers; each block says why it is sound"
)]
#![allow(
    clippy::inline_always,
    reason = "a call costs stack, and the verifier follows inlined code with more knowledge"
)]
#![allow(
    clippy::cast_possible_truncation,
    reason = "the context pads 16-bit values to 32 bits, and there is nobody to hand an error to"
)]
#![allow(
    clippy::needless_borrows_for_generic_args,
    reason = "a key passed by value is one more copy on a stack of 512 bytes"
)]

mod cells;
mod config;
mod connect;
mod context;
mod events;
mod existing;
mod failure;
mod flow;
mod kernel_memory;
mod log;
mod maps;
mod process;
mod reconstruct;
mod rtt;
mod sample;
mod sock_ops;
mod table;
mod trial;
mod watch;

/// The licence that the kernel is told; GPL-compatible, which some helpers ask for.
#[used]
#[unsafe(link_section = "license")]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    // Never reached: the verifier refuses a program in which it could be.
    loop {}
}
