//! kube-apiserver's static pod.

use std::path::PathBuf;

use super::endpoints;
use super::flags::Flags;
use crate::discover::endpoint::Endpoint;
use crate::discover::error::DiscoverError;
use crate::discover::origin::{Found, Origin};
use crate::discover::root::Text;
use crate::discover::yaml::Documents;
use crate::target::{Role, RoleName, TargetSpec};

/// What the manifest of this node's API server says.
pub(in crate::discover) struct ApiServerManifest {
    /// The address it announces to the cluster.
    pub(in crate::discover) advertised: Option<Found<TargetSpec>>,
    /// The etcd it uses.
    pub(in crate::discover) etcd: Vec<Found<Endpoint>>,
    pub(in crate::discover) etcd_ca: Option<PathBuf>,
    pub(in crate::discover) etcd_pair: Option<(PathBuf, PathBuf)>,
    pub(in crate::discover) origin: Origin,
}

/// Reads the manifest.
///
/// # Errors
/// It is not YAML, no pod, does not run kube-apiserver, or a flag that is needed is not what it should be.
pub(in crate::discover) fn apiserver(text: &Text) -> Result<ApiServerManifest, DiscoverError> {
    let documents = Documents::parse(text)?;
    let flags = Flags::of(&documents, "kube-apiserver")?;
    let path = |name| {
        flags
            .flag(name)
            .map(|value| value.text().map(PathBuf::from))
            .transpose()
    };
    Ok(ApiServerManifest {
        advertised: advertised(&flags)?,
        etcd: endpoints(Role::EtcdClient, flags.flag("etcd-servers"))?,
        etcd_ca: path("etcd-cafile")?,
        etcd_pair: path("etcd-certfile")?.zip(path("etcd-keyfile")?),
        origin: Origin::file(&text.source.path),
    })
}

fn advertised(flags: &Flags<'_>) -> Result<Option<Found<TargetSpec>>, DiscoverError> {
    let Some(address) = flags.flag("advertise-address") else {
        return Ok(None);
    };
    let port = match flags.flag("secure-port") {
        None => Role::ApiServer.default_port(),
        Some(value) => value
            .text()?
            .parse()
            .ok()
            .filter(|port| *port > 0)
            .ok_or_else(|| value.refuse("it is not a port"))?,
    };
    let host = address.text()?;
    if host.parse::<std::net::IpAddr>().is_err() {
        return Err(address.refuse("it is not an IP address"));
    }
    let spec = TargetSpec {
        role: Role::ApiServer,
        host: host.to_owned(),
        port,
    };
    Ok(Some(Found::new(spec, address.origin())))
}
