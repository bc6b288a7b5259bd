//! The kernel side's counterpart: loads, attaches, reads maps. The only module that names aya.
#![allow(
    unsafe_code,
    reason = "maps are shared with the kernel; each block says why it is sound"
)]

mod attach;
mod attach_points;
mod btf;
mod capability;
mod cgroup;
mod config;
mod earlier;
mod error;
mod events;
mod existing;
mod features;
mod file_view;
mod hook;
pub mod host;
mod kernel;
mod kernel_log;
mod load;
mod loader;
pub mod lockdown;
mod mapped;
mod namespaces;
mod observer;
mod own;
mod reconstruction;
mod reduce;
mod sampling;
mod socket;
mod source;
mod stats;
mod syscall;
mod task;
mod tcp_info;
mod trial;
mod wait;

pub use capability::Capability;
pub use cgroup::{Hierarchy, Layout};
pub use config::{Grouping, ObserverConfig, Scope};
pub use error::{AttachError, ReadError};
pub use events::EventStream;
pub use kernel_log::KernelLog;
pub use observer::{Endpoint, Observer};
pub use own::OwnProbes;
pub use socket::{socket_cookie, unsent_and_unacked};
pub use stats::{ObserverStats, RttSource};
pub use tcp_info::{TcpSegments, tcp_segments};
