//! The member list, from etcd itself.

use std::net::SocketAddr;

use etcd_client::{Channel, Client, MemberListResponse};
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::client::TlsStream;
use tonic::transport::Endpoint;

use super::api::OnlineError;
use super::connection::dial;
use crate::discover::endpoint::{Scheme, endpoint};
use crate::discover::origin::{Found, Origin};
use crate::probe::{OneConnection, WireStream};
use crate::target::{Role, TargetSpec};
use crate::tls::ClientTls;

/// An etcd member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name; empty while it has never started.
    pub name: String,
    /// Its client addresses; none while it has never started.
    pub clients: Vec<Found<TargetSpec>>,
    /// Its peer addresses.
    pub peers: Vec<Found<TargetSpec>>,
    /// It receives the data but does not vote yet, and answers no reads.
    pub is_learner: bool,
}

/// Asks one member for the list of all: one read-only call.
///
/// # Errors
/// There are no credentials or no CA, the member cannot be asked, or it refuses.
pub async fn members(
    spec: &TargetSpec,
    address: SocketAddr,
    tls: &ClientTls,
    deadline: Instant,
) -> Result<Vec<Member>, OnlineError> {
    let refuse = |reason: String| OnlineError(format!("{spec} {reason}"));
    if tls.shown().is_none() {
        return Err(refuse(
            "can only be asked for the member list with a client certificate and a CA".to_owned(),
        ));
    }
    let list = async {
        let connection = dial(&spec.host, address, tls, &[b"h2"]).await?;
        let list = ask(address, connection.stream).await;
        connection.closing.close(deadline).await;
        list.map_err(|error| format!("did not give the member list: {}", innermost(&*error)))
    };
    let list = match timeout_at(deadline, list).await {
        Ok(Ok(list)) => list,
        Ok(Err(reason)) => return Err(refuse(reason)),
        Err(_) => return Err(refuse("did not give the member list in time".to_owned())),
    };
    Ok(list
        .members()
        .iter()
        .map(|member| {
            let origin = Origin::Cluster(match member.name() {
                "" => format!("member list of {spec}"),
                name => format!("member list of {spec} ({name})"),
            });
            Member {
                name: member.name().to_owned(),
                clients: addresses(Role::EtcdClient, member.client_urls(), &origin),
                peers: addresses(Role::EtcdPeer, member.peer_urls(), &origin),
                is_learner: member.is_learner(),
            }
        })
        .collect())
}

/// What cannot be dialled over TLS is left out: the list is the cluster's, not the user's to correct.
fn addresses(role: Role, urls: &[String], origin: &Origin) -> Vec<Found<TargetSpec>> {
    urls.iter()
        .filter_map(|url| endpoint(role, url, None).ok())
        .filter(|endpoint| endpoint.scheme == Scheme::Tls)
        .map(|endpoint| Found::new(endpoint.spec, origin.clone()))
        .collect()
}

async fn ask(
    address: SocketAddr,
    stream: TlsStream<WireStream>,
) -> Result<MemberListResponse, Box<dyn std::error::Error + Send + Sync>> {
    // Without tonic's own TLS the scheme must read http; the origin is what the server sees.
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?
        .origin(format!("https://{address}").parse()?)
        .user_agent(concat!("joinprobe/", env!("CARGO_PKG_VERSION")))?;
    let connection = OneConnection(Some(TokioIo::new(stream)));
    let channel = endpoint.connect_with_connector(connection).await?;
    let client = Client::from_channel(Channel::Tonic(channel), None).await?;
    Ok(client.cluster_client().member_list().await?)
}

/// The cause at the bottom: the layers above only say that there is one.
fn innermost(error: &(dyn std::error::Error + Send + Sync + 'static)) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
