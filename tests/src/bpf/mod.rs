//! What the kernel holds of BPF programs, and a program that is not joinprobe's.

mod assembled;
mod callback_flags;
mod cgroup;
mod objects;
mod other_program;
mod run_stats;

pub use callback_flags::CallbackFlags;
pub use cgroup::{Cgroup, root as cgroup_root};
pub use objects::BpfObjects;
pub use other_program::{Attached, OtherProgram, RWND_PACKETS};
pub use run_stats::{RunStats, Statistics, run_count};
