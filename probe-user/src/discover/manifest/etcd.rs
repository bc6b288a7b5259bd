//! etcd's static pod.

use std::path::PathBuf;
use std::time::Duration;

use super::flags::Flags;
use super::{NOT_MILLISECONDS, endpoints, parse_milliseconds};
use crate::discover::endpoint::{Endpoint, endpoint};
use crate::discover::error::DiscoverError;
use crate::discover::origin::{Found, Origin};
use crate::discover::root::Text;
use crate::discover::yaml::Documents;
use crate::target::Role;

/// What the manifest of this node's etcd member says.
pub(in crate::discover) struct EtcdManifest {
    /// This member's own client addresses.
    pub(in crate::discover) clients: Vec<Found<Endpoint>>,
    /// The other members' peer addresses when this one started for the first time. Members may have gone since.
    pub(in crate::discover) peers: Vec<Found<Endpoint>>,
    pub(in crate::discover) ca: Option<PathBuf>,
    /// Certificate and key towards clients, then towards peers.
    pub(in crate::discover) pairs: Vec<(PathBuf, PathBuf)>,
    pub(in crate::discover) heartbeat: Option<Found<Duration>>,
    pub(in crate::discover) election: Option<Found<Duration>>,
    pub(in crate::discover) origin: Origin,
}

/// Reads the manifest.
///
/// # Errors
/// It is not YAML, no pod, does not run etcd, or a flag that is needed is not what it should be.
pub(in crate::discover) fn etcd(text: &Text) -> Result<EtcdManifest, DiscoverError> {
    let documents = Documents::parse(text)?;
    let flags = Flags::of(&documents, "etcd")?;
    let own_peers = endpoints(Role::EtcdPeer, flags.option("initial-advertise-peer-urls")?)?;
    let mut pairs = Vec::new();
    for (certificate, key) in [
        ("cert-file", "key-file"),
        ("peer-cert-file", "peer-key-file"),
    ] {
        if let (Some(certificate), Some(key)) = (path(&flags, certificate)?, path(&flags, key)?) {
            pairs.push((certificate, key));
        }
    }
    Ok(EtcdManifest {
        clients: endpoints(Role::EtcdClient, flags.option("advertise-client-urls")?)?,
        peers: peers(&flags, &own_peers)?,
        ca: path(&flags, "trusted-ca-file")?,
        pairs,
        heartbeat: interval(&flags, "heartbeat-interval")?,
        election: interval(&flags, "election-timeout")?,
        origin: Origin::file(&text.source.path),
    })
}

fn path(flags: &Flags<'_>, name: &str) -> Result<Option<PathBuf>, DiscoverError> {
    flags
        .option(name)?
        .map(|value| value.text().map(PathBuf::from))
        .transpose()
}

fn interval(flags: &Flags<'_>, name: &str) -> Result<Option<Found<Duration>>, DiscoverError> {
    let Some(value) = flags.option(name)? else {
        return Ok(None);
    };
    match parse_milliseconds(value.text()?) {
        Some(duration) => Ok(Some(Found::new(duration, value.origin()))),
        None => Err(value.refuse(NOT_MILLISECONDS)),
    }
}

/// `--initial-cluster`: `name=URL,name=URL`; a member with several URLs stands there several times.
fn peers(
    flags: &Flags<'_>,
    own: &[Found<Endpoint>],
) -> Result<Vec<Found<Endpoint>>, DiscoverError> {
    let Some(value) = flags.option("initial-cluster")? else {
        return Ok(Vec::new());
    };
    let mut peers = Vec::new();
    for member in value.text()?.split(',').map(str::trim) {
        let Some((_, url)) = member.split_once('=') else {
            return Err(value.refuse("a member is not of the form NAME=URL"));
        };
        let peer = endpoint(Role::EtcdPeer, url, None).map_err(|reason| value.refuse(reason))?;
        if !own.iter().any(|own| own.value == peer) {
            peers.push(Found::new(peer, value.origin()));
        }
    }
    Ok(peers)
}
