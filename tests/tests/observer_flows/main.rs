//! Which process opened a connection, connections that were there before, and flows that are easily counted twice.

mod existing;
mod once;
mod open;
mod processes;
mod rights;
// Elsewhere the table is not used.
#[cfg(target_arch = "x86_64")]
mod table;
mod who;

use anyhow::Result;
use joinprobe_lab::bpf::Cgroup;
use joinprobe_lab::{Namespace, take_turn};
use probe_common::endpoint::Role;
use probe_user::bpf::{Observer, ObserverConfig};

const ETCD: &str = "127.0.0.1:2379";

/// Runs a test in a namespace of its own, when its turn has come.
fn in_namespace(test: impl FnOnce() -> Result<()> + Send) -> Result<()> {
    let Some(_turn) = take_turn(&[])? else {
        return Ok(());
    };
    Namespace::create()?.enter(test)?
}

/// Observes etcd's client port for sockets of a cgroup.
fn observer_on(cgroup: &Cgroup) -> Result<Observer> {
    Ok(Observer::attach(&ObserverConfig {
        ports: vec![(2379, Role::EtcdClient)],
        cgroup: Some(cgroup.path().to_owned()),
        ..ObserverConfig::default()
    })?)
}
