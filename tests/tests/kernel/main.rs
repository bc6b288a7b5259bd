//! What must work on every kernel: `cargo xtask test-kernels` runs this program in a virtual machine of each, and it
//! runs as it is on the kernel at hand.

mod earlier;
mod lost;
mod preflight;
mod process;
mod rtt;

use std::fmt::Display;

/// A cell of the kernel table, for `cargo xtask test-kernels` to pick out of the output.
#[allow(
    clippy::print_stdout,
    reason = "a test program's output is its standard output"
)]
fn tell(column: &str, value: impl Display) {
    println!("kernel-table {column}: {value}");
}
