//! The one read that etcd is asked for.

use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use etcd_client::{Channel, Client, Error, GetOptions, GetResponse};
use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::client::TlsStream;
use tonic::Code;
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
            report.etcd = Some(refused(target, &error)?);
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

/// Tells answers from failures among the errors: etcd checks permissions after the quorum has agreed
/// (`EtcdServer.Range`), so that a refusal is a completed read.
fn refused(target: &Target, error: &Error) -> Result<EtcdAnswer, ProbeFailure> {
    let without_data = |result| EtcdAnswer {
        revision: None,
        member_id: None,
        result,
    };
    let failure = |result, text| ProbeFailure {
        stage: Stage::Request,
        result,
        text,
    };
    let Error::GRpcStatus(status) = error else {
        return Err(failure(
            "request_failed",
            format!(
                "reading from {target} failed: {}; check that etcd serves its client API there",
                innermost(error)
            ),
        ));
    };
    let message = status.message();
    match status.code() {
        Code::PermissionDenied => Ok(without_data("permission denied")),
        // A certificate without a common name, where authentication is on.
        Code::InvalidArgument if message.contains("user name is empty") => {
            Ok(without_data("permission denied"))
        }
        Code::Unavailable if message.contains("learner") => Ok(without_data("learner")),
        // An election fell into the read: there is a leader again, and a client that asks again is served.
        Code::Unavailable if message == "etcdserver: leader changed" => {
            Ok(without_data(LEADER_CHANGED))
        }
        Code::Unimplemented => Err(failure(
            "request_failed",
            format!("{target} answers, but not as etcd does ({message}); check the address"),
        )),
        _ if message.starts_with("etcdserver:") => Err(failure(
            "unhealthy",
            format!(
                "{target} answered a read with `{message}`: the cluster does not serve; see etcd's log and \
                 `etcdctl endpoint status --cluster`"
            ),
        )),
        _ => Err(failure(
            "request_failed",
            format!(
                "reading from {target} failed: {}; check that etcd serves its client API there",
                innermost(status)
            ),
        )),
    }
}

/// The cause at the bottom: the layers above only say that there is one.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let io: Option<&io::Error> = cause.downcast_ref();
    if io.is_some_and(|io| io.kind() == io::ErrorKind::UnexpectedEof) {
        return "it closed the connection".to_owned();
    }
    text::first_line(cause.to_string().as_bytes())
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

#[cfg(test)]
mod tests {
    use tonic::Status;

    use super::*;
    use crate::target::{Role, parse};

    fn said(code: Code, message: &str) -> Result<&'static str, &'static str> {
        let target = Target {
            spec: parse(Role::EtcdClient, "10.1.0.2:2379").unwrap(),
            address: None,
        };
        let status = Status::new(code, message.to_owned());
        refused(&target, &Error::GRpcStatus(status))
            .map(|answer| answer.result)
            .map_err(|failure| failure.result)
    }

    #[test]
    fn answers_are_told_from_failures() {
        for (code, message, outcome) in [
            (
                Code::PermissionDenied,
                "etcdserver: permission denied",
                Ok("permission denied"),
            ),
            (
                Code::Unavailable,
                "etcdserver: leader changed",
                Ok("leader changed"),
            ),
            (
                Code::Unavailable,
                "etcdserver: rpc not supported for learner",
                Ok("learner"),
            ),
            (Code::Unavailable, "etcdserver: no leader", Err("unhealthy")),
            (
                Code::Unavailable,
                "etcdserver: request timed out, possibly due to previous leader failure",
                Err("unhealthy"),
            ),
            (
                Code::ResourceExhausted,
                "etcdserver: too many requests",
                Err("unhealthy"),
            ),
            (
                Code::Unimplemented,
                "unknown service",
                Err("request_failed"),
            ),
        ] {
            assert_eq!(said(code, message), outcome, "{message}");
        }
    }
}
