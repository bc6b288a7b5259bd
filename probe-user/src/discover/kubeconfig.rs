//! kubeconfigs: where the API server is, whom to trust, and with what to log in.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::endpoint::{Scheme, endpoint};
use super::error::DiscoverError;
use super::origin::{Found, Origin};
use super::root::{Text, beside};
use super::secret::Secret;
use super::yaml::{Documents, Field};
use crate::target::{Role, TargetSpec};

/// A PEM text: in a file of its own, or in the one that names it. Wiped when dropped, as it may be a key.
#[derive(Clone)]
pub enum Pem {
    /// A file.
    File(PathBuf),
    /// The PEM itself.
    Inline(Zeroizing<Vec<u8>>),
}

/// How a kubeconfig's user logs in.
#[derive(Default)]
pub struct Login {
    /// Client certificate and key.
    pub pair: Option<(Pem, Pem)>,
    /// A bearer token.
    pub token: Option<Secret>,
    /// A file that holds a bearer token.
    pub token_file: Option<PathBuf>,
    /// A way that joinprobe does not take: a command, a provider or a password.
    pub other: Option<&'static str>,
}

/// What a kubeconfig's current context says.
pub struct Kubeconfig {
    /// The API server, or its load balancer.
    pub server: Found<TargetSpec>,
    /// CA of the API server's certificate.
    pub ca: Option<Found<Pem>>,
    /// The name its certificate has to show, where it is not the host's.
    pub server_name: Option<String>,
    /// The user gave up on verification.
    pub skips_verification: bool,
    /// The connection is meant to go through a proxy, which joinprobe does not use.
    pub has_proxy: bool,
    /// How its user logs in.
    pub login: Login,
    /// The file.
    pub origin: Origin,
}

/// Reads a kubeconfig.
///
/// # Errors
/// The file is not YAML, has no cluster that can be told, or a field that is needed is not what it should be.
pub(super) fn read(text: &Text) -> Result<Kubeconfig, DiscoverError> {
    let documents = Documents::parse(text)?;
    let top = documents.first()?;
    refuse_other_kind(&top)?;
    let context = context(&top)?;
    let cluster = cluster(&top, context.as_ref())?;
    let address = cluster.get("server")?;
    let Some(found) = address.found()? else {
        return Err(address.refuse("it is missing"));
    };
    let endpoint = endpoint(Role::ApiServer, found.value, Some(443))
        .map_err(|reason| address.refuse(reason))?;
    if endpoint.scheme != Scheme::Tls {
        return Err(address.refuse("the API server is only reached over TLS"));
    }
    Ok(Kubeconfig {
        server: Found::new(endpoint.spec, found.origin),
        ca: pem(&cluster, "certificate-authority")?,
        server_name: cluster.get("tls-server-name")?.text()?.map(str::to_owned),
        skips_verification: cluster.get("insecure-skip-tls-verify")?.yes()?,
        has_proxy: cluster.get("proxy-url")?.exists(),
        login: login(&top, context.as_ref())?,
        origin: Origin::file(&text.source.path),
    })
}

/// Says what a file is that was saved in a kubeconfig's place. kubectl itself does not insist on the kind.
fn refuse_other_kind(top: &Field<'_>) -> Result<(), DiscoverError> {
    let kind = top.get("kind")?;
    match kind.text()? {
        None | Some("Config") => Ok(()),
        Some("ConfigMap") if top.get("data")?.get("kubeconfig")?.exists() => Err(kind.refuse_with(
            "it is the ConfigMap cluster-info, and not the kubeconfig in it",
            "save that: `kubectl get configmap -n kube-public cluster-info -o jsonpath={.data.kubeconfig}`",
        )),
        Some(_) => Err(kind.refuse("it is not Config, so this is no kubeconfig")),
    }
}

/// The entry of a named list: `key` is what it holds besides its name.
fn named<'a>(
    top: &Field<'a>,
    list: &str,
    key: &str,
    name: &str,
) -> Result<Option<Field<'a>>, DiscoverError> {
    for item in top.get(list)?.items()? {
        if item.get("name")?.text()?.unwrap_or_default() == name {
            return item.get(key).map(Some);
        }
    }
    Ok(None)
}

/// The current context; `None` where none is set, as in the kubeconfig of kubeadm's cluster-info.
fn context<'a>(top: &Field<'a>) -> Result<Option<Field<'a>>, DiscoverError> {
    let current = top.get("current-context")?;
    let Some(name) = current.text()? else {
        return Ok(None);
    };
    match named(top, "contexts", "context", name)? {
        Some(context) => Ok(Some(context)),
        None => Err(current.refuse("there is no context of that name")),
    }
}

fn cluster<'a>(top: &Field<'a>, context: Option<&Field<'a>>) -> Result<Field<'a>, DiscoverError> {
    let clusters = top.get("clusters")?;
    if let Some(context) = context {
        let name = context.get("cluster")?;
        return named(top, "clusters", "cluster", name.text()?.unwrap_or_default())?
            .ok_or_else(|| name.refuse("there is no cluster of that name"));
    }
    // kubeadm takes the cluster without a name; a file that holds only one leaves no doubt either.
    if let Some(cluster) = named(top, "clusters", "cluster", "")? {
        return Ok(cluster);
    }
    match clusters.items()?.as_slice() {
        [only] => only.get("cluster"),
        [] => Err(clusters.refuse("it is missing or empty")),
        _ => Err(clusters.refuse_with(
            "it holds several clusters and there is no current-context to choose one",
            "choose one with `kubectl config use-context`",
        )),
    }
}

/// `key` names a file, `key-data` holds the PEM itself in base64 and wins, as in kubectl.
fn pem(field: &Field<'_>, key: &str) -> Result<Option<Found<Pem>>, DiscoverError> {
    let data = field.get(&format!("{key}-data"))?;
    if let Some(secret) = data.secret()? {
        let packed: Zeroizing<String> = Zeroizing::new(
            secret
                .expose()
                .chars()
                .filter(|character| !character.is_ascii_whitespace())
                .collect(),
        );
        let bytes = STANDARD
            .decode(packed.as_bytes())
            .map_err(|_| data.refuse("it is not base64"))?;
        return Ok(Some(Found::new(
            Pem::Inline(Zeroizing::new(bytes)),
            data.origin(),
        )));
    }
    let file = field.get(key)?;
    Ok(file.found()?.map(|found| {
        Found::new(
            Pem::File(beside(&file.source().inside, found.value)),
            found.origin,
        )
    }))
}

fn login(top: &Field<'_>, context: Option<&Field<'_>>) -> Result<Login, DiscoverError> {
    let Some(context) = context else {
        return Ok(Login::default());
    };
    let name = context.get("user")?.text()?.unwrap_or_default();
    let Some(user) = named(top, "users", "user", name)? else {
        return Ok(Login::default());
    };
    let pair = match (pem(&user, "client-certificate")?, pem(&user, "client-key")?) {
        (Some(certificate), Some(key)) => Some((certificate.value, key.value)),
        (None, None) => None,
        _ => return Err(user.refuse("it has only one of client certificate and client key")),
    };
    let token_file = user.get("tokenFile")?;
    let other = [
        ("exec", "a command (exec)"),
        ("auth-provider", "an auth provider"),
        ("username", "a user name and password"),
    ];
    let mut unused = None;
    for (key, words) in other {
        if user.get(key)?.exists() {
            unused = Some(words);
            break;
        }
    }
    Ok(Login {
        pair,
        token: user.get("token")?.secret()?,
        token_file: token_file
            .text()?
            .map(|path| beside(&token_file.source().inside, path)),
        other: unused,
    })
}
