//! The `joinprobe` command.
fn main() {}
