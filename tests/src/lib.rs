//! The lab joinprobe is tested in: network namespaces joined by a link that can delay and lose packets, real servers
//! in them, and a capture whose kernel timestamps are the truth that measurements are held against.
//!
//! Everything here needs root (or `CAP_NET_ADMIN`, `CAP_SYS_ADMIN` and `CAP_NET_RAW`), touches nothing outside the
//! namespaces it makes, and takes down what it made when its value is dropped, also by a panic. What a killed process
//! left behind is removed by the next one that starts.

pub mod apiserver;
pub mod attempts;
pub mod bpf;
pub mod capture;
pub mod etcd;
pub mod lab;
pub mod link;
pub mod monitoring;
pub mod netns;
pub mod pair;
pub mod pki;
mod process_name;
pub mod programs;
pub mod report;
pub mod schema;
pub mod segment;
mod turn;
mod unique;

pub use attempts::{attempts, on_time};
pub use capture::Capture;
pub use lab::Lab;
pub use link::{Impairment, Link, NodeId};
pub use netns::Namespace;
pub use pair::Pair;
pub use process_name::renamed;
pub use turn::{Turn, can_run, take_turn};
pub use unique::scratch_dir;
