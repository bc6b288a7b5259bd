//! ClusterConfiguration.

use std::path::PathBuf;
use std::time::Duration;

use crate::discover::endpoint::{Endpoint, endpoint};
use crate::discover::error::DiscoverError;
use crate::discover::manifest::milliseconds;
use crate::discover::origin::{Found, Origin};
use crate::discover::yaml::Field;
use crate::target::{Role, RoleName, TargetSpec};

/// An etcd that the cluster does not run itself.
pub(in crate::discover) struct ExternalEtcd {
    /// The members' client addresses.
    pub(in crate::discover) endpoints: Vec<Found<Endpoint>>,
    /// CA of the members' certificates.
    pub(in crate::discover) ca: Option<PathBuf>,
    /// Client certificate and key.
    pub(in crate::discover) pair: Option<(PathBuf, PathBuf)>,
    /// Where it is said.
    pub(in crate::discover) origin: Origin,
}

/// What a ClusterConfiguration says.
#[derive(Default)]
pub(in crate::discover) struct ClusterConfig {
    pub(in crate::discover) endpoint: Option<Found<TargetSpec>>,
    pub(in crate::discover) external_etcd: Option<ExternalEtcd>,
    pub(in crate::discover) certificates: Option<PathBuf>,
    pub(in crate::discover) heartbeat: Option<Found<Duration>>,
    pub(in crate::discover) election: Option<Found<Duration>>,
}

pub(super) fn cluster_config(top: &Field<'_>) -> Result<ClusterConfig, DiscoverError> {
    let local = top.at(&["etcd", "local", "extraArgs"])?;
    Ok(ClusterConfig {
        endpoint: control_plane_endpoint(&top.get("controlPlaneEndpoint")?)?,
        external_etcd: external(&top.at(&["etcd", "external"])?)?,
        certificates: top.get("certificatesDir")?.text()?.map(PathBuf::from),
        heartbeat: extra_arg(&local, "heartbeat-interval")?,
        election: extra_arg(&local, "election-timeout")?,
    })
}

fn control_plane_endpoint(field: &Field<'_>) -> Result<Option<Found<TargetSpec>>, DiscoverError> {
    let Some(found) = field.found()? else {
        return Ok(None);
    };
    let endpoint = endpoint(
        Role::ApiServer,
        found.value,
        Some(Role::ApiServer.default_port()),
    )
    .map_err(|reason| field.refuse(reason))?;
    Ok(Some(Found::new(endpoint.spec, found.origin)))
}

fn external(field: &Field<'_>) -> Result<Option<ExternalEtcd>, DiscoverError> {
    if !field.exists() {
        return Ok(None);
    }
    let list = field.get("endpoints")?;
    let mut endpoints = Vec::new();
    for item in list.items()? {
        let text = item.text()?.unwrap_or_default();
        let endpoint =
            endpoint(Role::EtcdClient, text, None).map_err(|reason| item.refuse(reason))?;
        endpoints.push(Found::new(endpoint, item.origin()));
    }
    if endpoints.is_empty() {
        return Err(list.refuse("it is missing or empty, and external etcd needs it"));
    }
    let file = |key| Ok(field.get(key)?.text()?.map(PathBuf::from));
    let pair = match (file("certFile")?, file("keyFile")?) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err(field.refuse("it has only one of certFile and keyFile")),
    };
    Ok(Some(ExternalEtcd {
        endpoints,
        ca: file("caFile")?,
        pair,
        origin: field.origin(),
    }))
}

/// An extra argument: a mapping up to v1beta3, a list of name and value since v1beta4.
fn extra_arg(args: &Field<'_>, name: &str) -> Result<Option<Found<Duration>>, DiscoverError> {
    if !args.is_list() {
        return milliseconds(&args.get(name)?);
    }
    let mut last = None;
    for item in args.items()? {
        if item.get("name")?.text()? == Some(name) {
            last = milliseconds(&item.get("value")?)?;
        }
    }
    Ok(last)
}
