//! Builds, tests and shows joinprobe.
fn main() {}
