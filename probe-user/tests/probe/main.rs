//! The probe against real servers: etcd and an API server in the lab, and ones that misbehave on loopback.

mod answers;
mod broken;
mod certificates;
mod foreign;
mod kernel;
mod lab;
mod pacing;
mod paths;
mod requests;
mod server;
mod support;
