//! What names resolve to, and what the way carries.

mod chroot;
mod name_server;
mod names;
mod path_mtu;

use std::net::SocketAddr;

use anyhow::{Context, Result};
use joinprobe_lab::Lab;
use joinprobe_lab::lab::Finished;
use joinprobe_lab::pki::{Leaf, Usage, Validity};
use joinprobe_lab::{apiserver::ApiServer, lab::Node};
use serde_json::Value;

/// An API server on a host of its own, whose certificate holds these names.
fn api_server(
    lab: &Lab,
    node: &Node,
    address: SocketAddr,
    names: Vec<String>,
) -> Result<ApiServer> {
    let certificate = lab.pki.kubernetes.issue(
        &lab.folder().join("api"),
        "apiserver",
        &Leaf {
            common_name: "kube-apiserver",
            organisation: None,
            names,
            usage: Usage::Server,
            validity: Validity::Now,
        },
    )?;
    ApiServer::start(
        &node.namespace,
        &[address],
        &certificate,
        &lab.pki.kubernetes.pair.cert,
    )
}

/// The finding of this id, of any target or of the run.
fn finding(finished: &Finished, id: &str) -> Result<Option<Value>> {
    let report = finished.report()?;
    let targets = report.0["targets"].as_array().context("no targets")?;
    let mut all = targets
        .iter()
        .filter_map(|target| target["findings"].as_array())
        .chain(report.0["findings"].as_array())
        .flatten();
    Ok(all.find(|finding| finding["id"] == id).cloned())
}
