//! `joinprobe watch` and `joinprobe run` in the lab.

mod command;
mod endings;
mod join;
mod lines;
mod members;
mod outputs;
mod phases;
mod privilege;
mod processes;
mod resources;
mod systemd;
mod terminal;
mod traffic;
