//! Says whether the network lets a node join a Kubernetes control plane.

pub mod bpf;
pub mod cli;
pub mod config;
pub mod discover;
pub mod doctor;
pub mod exit;
pub mod histogram;
pub mod measure;
pub mod open_files;
pub mod output;
pub mod plan;
pub mod preflight;
pub mod probe;
pub mod report;
pub mod run;
pub mod runner;
pub mod secrecy;
pub mod target;
pub mod tls;
pub mod trace;
pub mod verdict;
pub mod watch;
