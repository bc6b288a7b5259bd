//! What the kernel holds of BPF programs, and a program that is not joinprobe's.

mod cgroup;
mod objects;
mod other_program;

pub use cgroup::{Cgroup, root as cgroup_root};
pub use objects::{BpfObjects, run_count};
pub use other_program::{Attached, OtherProgram, RWND_PACKETS};
