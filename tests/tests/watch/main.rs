//! `joinprobe watch` and `joinprobe run` in the lab.

mod join;
mod lines;
mod phases;
mod privilege;
mod traffic;
