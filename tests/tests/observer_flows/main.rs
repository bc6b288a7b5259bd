//! Which process opened a connection, connections that were there before, and flows that are easily counted twice.

mod existing;
mod once;
mod open;
mod processes;
mod rights;
mod table;
mod who;

use anyhow::Result;
use joinprobe_lab::{Namespace, take_turn};

const ETCD: &str = "127.0.0.1:2379";

/// Runs a test in a namespace of its own, when its turn has come.
fn in_namespace(test: impl FnOnce() -> Result<()> + Send) -> Result<()> {
    let Some(_turn) = take_turn(&[])? else {
        return Ok(());
    };
    Namespace::create()?.enter(test)?
}
