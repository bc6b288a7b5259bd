//! The one read that etcd is asked for.

mod refused;

use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use etcd_client::{Channel, Client, Error, GetOptions, GetResponse};
use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::client::TlsStream;
use tonic::transport::Endpoint;
use tower_service::Service;

use super::report::{EtcdAnswer, ProbeFailure, ProbeReport, Stage};
use super::text;
use super::wire::WireStream;
use crate::target::Target;

/// kubeadm's limit for each call to etcd.
const LIMIT: Duration = Duration::from_secs(2);

/// A key nobody writes: what is asked for is a quorum's agreement on its absence.
const KEY: &str = "joinprobe/no-such-key";

/// What is said of a read into which an election fell.
pub(crate) const LEADER_CHANGED: &str = "leader changed";

/// Sends one linearizable Range over the stream, never over another connection, and never again.
pub(super) async fn read(
    target: &Target,
    stream: TlsStream<WireStream>,
    until: Instant,
    report: &mut ProbeReport,
) -> Result<(), ProbeFailure> {
    let started = Instant::now();
    let until = until.min(started + LIMIT);
    let outcome = timeout_at(until, range(target, stream)).await;
    let took = started.elapsed();
    report.stages.request = Some(took);
    match outcome {
        Err(_) => Err(ProbeFailure {
            stage: Stage::Request,
            result: "timed_out",
            text: format!(
                "{target} did not answer a linearizable read within {}: etcd has no quorum or no leader, or its disk \
                 is slow; see its log and `etcdctl endpoint status --cluster`",
                text::span(took)
            ),
        }),
        Ok(Ok(response)) => {
            report.etcd = Some(answer(&response));
            Ok(())
        }
        Ok(Err(error)) => {
            report.etcd = Some(refused::judge(target, &error)?);
            Ok(())
        }
    }
}

async fn range(target: &Target, stream: TlsStream<WireStream>) -> Result<GetResponse, Error> {
    // Without tonic's own TLS the scheme must read http; the origin is what the server sees.
    let authority = text::authority(target);
    let endpoint = Endpoint::from_shared(format!("http://{authority}"))?
        .origin(format!("https://{authority}").parse()?)
        .user_agent(concat!("joinprobe/", env!("CARGO_PKG_VERSION")))?;
    let connection = OneConnection(Some(TokioIo::new(stream)));
    let channel = endpoint.connect_with_connector(connection).await?;
    let client = Client::from_channel(Channel::Tonic(channel), None).await?;
    let options = GetOptions::new().with_limit(1).with_keys_only();
    client.kv_client().get(KEY, Some(options)).await
}

fn answer(response: &GetResponse) -> EtcdAnswer {
    let header = response.header();
    EtcdAnswer {
        revision: header.map(etcd_client::ResponseHeader::revision),
        member_id: header.map(etcd_client::ResponseHeader::member_id),
        result: "ok",
    }
}

/// A connector that hands out one established stream and never makes another.
pub(crate) struct OneConnection(pub(crate) Option<TokioIo<TlsStream<WireStream>>>);

impl Service<Uri> for OneConnection {
    type Response = TokioIo<TlsStream<WireStream>>;
    type Error = io::Error;
    type Future = std::future::Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _uri: Uri) -> Self::Future {
        std::future::ready(self.0.take().ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotConnected,
                "the server closed the connection",
            )
        }))
    }
}
