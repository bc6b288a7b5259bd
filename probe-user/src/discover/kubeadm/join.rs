//! JoinConfiguration.

use std::path::PathBuf;

use crate::discover::ca_hash::CaHash;
use crate::discover::endpoint::{Scheme, endpoint};
use crate::discover::error::DiscoverError;
use crate::discover::origin::{Found, Origin};
use crate::discover::secret::BootstrapToken;
use crate::discover::yaml::Field;
use crate::target::{Role, TargetSpec};

/// How the joining node learns about the cluster.
pub(in crate::discover) enum JoinDiscovery {
    /// From the API server, by a bootstrap token.
    Token {
        /// The API server, or its load balancer.
        endpoint: Found<TargetSpec>,
        /// Checks the signature of cluster-info; never sent anywhere.
        token: Option<BootstrapToken>,
        /// The CA's pins, with where they stand.
        pins: Option<Found<Vec<CaHash>>>,
        /// The user gave up on pinning.
        skips_verification: bool,
    },
    /// From a kubeconfig on disk.
    File(Found<PathBuf>),
    /// From a kubeconfig behind a URL, which joinprobe does not fetch.
    Url(Origin),
    /// Not said.
    None,
}

/// What a JoinConfiguration says.
pub(in crate::discover) struct JoinConfig {
    /// How the cluster is found.
    pub(in crate::discover) discovery: JoinDiscovery,
    /// There is a `controlPlane` section: the node becomes a control-plane node and needs etcd.
    pub(in crate::discover) control_plane: bool,
    /// Where the control-plane role is said, or not said.
    pub(in crate::discover) origin: Origin,
    /// Where the cluster's CA is, or will be.
    pub(in crate::discover) ca_certificate: Option<Found<PathBuf>>,
}

pub(super) fn join_config(top: &Field<'_>) -> Result<JoinConfig, DiscoverError> {
    let control_plane = top.get("controlPlane")?;
    // Only its presence matters, but text there is a mistake that kubeadm would refuse.
    control_plane.entries()?;
    let is_control_plane = control_plane.exists();
    Ok(JoinConfig {
        discovery: discovery(&top.get("discovery")?)?,
        control_plane: is_control_plane,
        origin: if is_control_plane {
            control_plane.origin()
        } else {
            Origin::file(&top.source().path)
        },
        ca_certificate: top
            .get("caCertPath")?
            .found()?
            .map(|found| Found::new(PathBuf::from(found.value), found.origin)),
    })
}

fn discovery(field: &Field<'_>) -> Result<JoinDiscovery, DiscoverError> {
    let file = field.get("file")?;
    let token = field.get("bootstrapToken")?;
    if token.exists() && file.exists() {
        return Err(field.refuse("it has both bootstrapToken and file, and kubeadm takes only one"));
    }
    if token.exists() {
        return by_token(field, &token);
    }
    let path = file.get("kubeConfigPath")?;
    match path.found()? {
        None if file.exists() => Err(path.refuse("it is missing, and discovery by file needs it")),
        None => Ok(JoinDiscovery::None),
        Some(found) if found.value.contains("://") => Ok(JoinDiscovery::Url(found.origin)),
        Some(found) => Ok(JoinDiscovery::File(Found::new(
            PathBuf::from(found.value),
            found.origin,
        ))),
    }
}

fn by_token(discovery: &Field<'_>, field: &Field<'_>) -> Result<JoinDiscovery, DiscoverError> {
    let address = field.get("apiServerEndpoint")?;
    let Some(found) = address.found()? else {
        return Err(address.refuse("it is missing, and discovery by token needs it"));
    };
    let endpoint =
        endpoint(Role::ApiServer, found.value, None).map_err(|reason| address.refuse(reason))?;
    if endpoint.scheme != Scheme::Tls {
        return Err(address.refuse("the API server is only reached over TLS"));
    }
    Ok(JoinDiscovery::Token {
        endpoint: Found::new(endpoint.spec, found.origin),
        token: token(discovery, field)?,
        pins: pins(field)?,
        skips_verification: field.get("unsafeSkipCAVerification")?.yes()?,
    })
}

/// `tlsBootstrapToken` stands in where discovery has no token of its own, as in kubeadm.
fn token(
    discovery: &Field<'_>,
    field: &Field<'_>,
) -> Result<Option<BootstrapToken>, DiscoverError> {
    for token in [field.get("token")?, discovery.get("tlsBootstrapToken")?] {
        if let Some(secret) = token.secret()? {
            return match BootstrapToken::parse(secret.expose()) {
                Some(token) => Ok(Some(token)),
                None => Err(token.refuse_with(
                    "it is not of the form ID.SECRET (six and sixteen lower-case letters or digits)",
                    "create one with `kubeadm token create`",
                )),
            };
        }
    }
    Ok(None)
}

fn pins(field: &Field<'_>) -> Result<Option<Found<Vec<CaHash>>>, DiscoverError> {
    let hashes = field.get("caCertHashes")?;
    let mut pins = Vec::new();
    for item in hashes.items()? {
        let text = item.text()?.unwrap_or_default();
        pins.push(text.parse().map_err(|error: crate::discover::HashError| {
            item.refuse_with(
                error.to_string(),
                "take it from `kubeadm token create --print-join-command`",
            )
        })?);
    }
    Ok((!pins.is_empty()).then(|| Found::new(pins, hashes.origin())))
}
