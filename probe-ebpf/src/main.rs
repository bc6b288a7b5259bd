//! joinprobe's kernel side: one `sock_ops` program that lets the kernel's own RTT measurements be counted.
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

mod cells;
mod config;
mod connect;
mod context;
mod events;
mod failure;
mod flow;
mod log;
mod maps;
mod rtt;
mod sock_ops;
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
