//! What the errors mean that a read can be answered with.

use std::io;

use etcd_client::Error;
use http::StatusCode;
use tonic::{Code, Status};

use super::LEADER_CHANGED;
use crate::probe::report::{EtcdAnswer, ProbeFailure, Stage};
use crate::probe::text;
use crate::target::Target;

/// What every message of etcd's own begins with (its `rpctypes`).
const ETCD: &str = "etcdserver:";

/// What tonic says of a response without a gRPC status, before the HTTP status it had.
const NO_STATUS: &str = "grpc-status header missing, mapped from HTTP status code ";

/// What tonic says of a body that it cannot read as gRPC messages, and what it puts before the HTTP status then.
const NO_MESSAGE: &str = "protocol error: ";
const WITH_STATUS: &str = "with status: ";

/// Tells answers from failures: etcd checks permissions after the quorum has agreed (`EtcdServer.Range`), so that a
/// refusal is a completed read. A refusal in other words than etcd's own comes from something before it.
pub(super) fn judge(target: &Target, error: &Error) -> Result<EtcdAnswer, ProbeFailure> {
    let Error::GRpcStatus(status) = error else {
        return Err(broken(target, error));
    };
    let message = status.message();
    if let Some(status) = message.strip_prefix(NO_STATUS) {
        return Err(no_grpc(target, status));
    }
    if message.starts_with(NO_MESSAGE) {
        let status = message.rsplit_once(WITH_STATUS);
        return Err(no_grpc(target, status.map_or("", |(_, status)| status)));
    }
    if !message.starts_with(ETCD) {
        return Err(not_etcds(target, status));
    }
    let result = match status.code() {
        Code::PermissionDenied => "permission denied",
        // A certificate without a common name, where authentication is on.
        Code::InvalidArgument if message.contains("user name is empty") => "permission denied",
        Code::Unavailable if message.contains("learner") => "learner",
        // An election fell into the read: there is a leader again, and a client that asks again is served.
        Code::Unavailable if message == "etcdserver: leader changed" => LEADER_CHANGED,
        _ => return Err(refusal(target, status)),
    };
    Ok(EtcdAnswer {
        revision: None,
        member_id: None,
        result,
    })
}

fn failure(result: &'static str, text: String) -> ProbeFailure {
    ProbeFailure {
        stage: Stage::Request,
        result,
        text,
    }
}

/// etcd itself refuses.
fn refusal(target: &Target, status: &Status) -> ProbeFailure {
    let (result, meaning) = match status.code() {
        Code::Unauthenticated => (
            "unauthenticated",
            "it wants a token or password besides the certificate, which neither kubeadm nor an API server sends; see \
             `etcdctl auth status` there",
        ),
        Code::DataLoss => (
            "unhealthy",
            "its data differs from the other members' (alarm CORRUPT); compare `etcdctl endpoint hashkv --cluster` and \
             replace the member that differs",
        ),
        Code::ResourceExhausted => (
            "unhealthy",
            "it is overloaded, or its quota is used up; see `etcdctl alarm list`, its load and its disk",
        ),
        _ => (
            "unhealthy",
            "the cluster does not serve; see etcd's log and `etcdctl endpoint status --cluster`",
        ),
    };
    let said = text::first_line(status.message().as_bytes());
    failure(
        result,
        format!("{target} answered a read with `{said}`: {meaning}"),
    )
}

/// An HTTP/2 server answered that knows nothing of gRPC.
fn no_grpc(target: &Target, status: &str) -> ProbeFailure {
    let code = status
        .split(' ')
        .next()
        .and_then(|number| number.parse().ok())
        .and_then(|number: u16| StatusCode::from_u16(number).ok());
    let (result, meaning) = match code {
        Some(
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT,
        ) => (
            "no_backend",
            "a load balancer or proxy without a healthy etcd behind it; check its backends, or give the members' own \
             addresses",
        ),
        Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => (
            "unauthenticated",
            "a proxy that wants other credentials than a client certificate, which neither kubeadm nor an API server \
             sends; give the members' own addresses",
        ),
        _ => (
            "request_failed",
            "a web server or proxy, and no etcd; check the address",
        ),
    };
    let http = code.map_or_else(String::new, |code| format!(" (HTTP {})", code.as_u16()));
    failure(
        result,
        format!("{target} answered a read without a gRPC status{http}: it is {meaning}"),
    )
}

/// A gRPC status in other words than etcd's: from its gRPC library, or from something before or instead of it.
fn not_etcds(target: &Target, status: &Status) -> ProbeFailure {
    if std::error::Error::source(status).is_some() {
        return broken(target, status);
    }
    let code = status.code();
    let (result, meaning) = match code {
        Code::Unauthenticated | Code::PermissionDenied => (
            "unauthenticated",
            "a proxy before etcd wants other credentials than a client certificate, which neither kubeadm nor an API \
             server sends; give the members' own addresses",
        ),
        Code::Unimplemented => (
            "request_failed",
            "it speaks gRPC, but is no etcd; check the address",
        ),
        Code::Unavailable => (
            "no_backend",
            "it is shutting down, or a proxy without a healthy etcd behind it; check the members, and the proxy's \
             backends",
        ),
        Code::DeadlineExceeded | Code::Cancelled => (
            "timed_out",
            "it gave up by itself: etcd has no quorum or no leader, or its disk is slow; see its log and `etcdctl \
             endpoint status --cluster`",
        ),
        Code::ResourceExhausted => (
            "unhealthy",
            "it takes no further requests; see its load and its limits",
        ),
        _ => (
            "request_failed",
            "that is none of etcd's answers; see its log, or the log of the proxy before it",
        ),
    };
    let said = text::first_line(status.message().as_bytes());
    let said = if said.is_empty() {
        "without a word".to_owned()
    } else {
        format!("`{said}`")
    };
    failure(
        result,
        format!(
            "{target} answered a read with the gRPC status {} ({code:?}, {said}): {meaning}",
            i32::from(code)
        ),
    )
}

/// The conversation broke.
fn broken(target: &Target, error: &(dyn std::error::Error + 'static)) -> ProbeFailure {
    failure(
        "request_failed",
        format!(
            "reading from {target} failed: {}; check that etcd serves its client API there",
            innermost(error)
        ),
    )
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Role, parse};

    fn said(code: Code, message: &str) -> Result<&'static str, &'static str> {
        let target = Target {
            spec: parse(Role::EtcdClient, "10.1.0.2:2379").unwrap(),
            address: None,
        };
        let status = Status::new(code, message.to_owned());
        judge(&target, &Error::GRpcStatus(status))
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
                Code::InvalidArgument,
                "etcdserver: user name is empty",
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
                Code::Unauthenticated,
                "etcdserver: invalid auth token",
                Err("unauthenticated"),
            ),
            (
                Code::DataLoss,
                "etcdserver: corrupt cluster",
                Err("unhealthy"),
            ),
        ] {
            assert_eq!(said(code, message), outcome, "{message}");
        }
    }

    #[test]
    fn only_etcds_own_words_make_an_answer() {
        for (code, message, result) in [
            (
                Code::PermissionDenied,
                "RBAC: access denied",
                "unauthenticated",
            ),
            (
                Code::PermissionDenied,
                "grpc-status header missing, mapped from HTTP status code 403",
                "unauthenticated",
            ),
            (
                Code::Unavailable,
                "grpc-status header missing, mapped from HTTP status code 503",
                "no_backend",
            ),
            (
                Code::Unknown,
                "grpc-status header missing, mapped from HTTP status code 200",
                "request_failed",
            ),
            (
                Code::Internal,
                "protocol error: received message with invalid compression flag: 60 (valid flags are 0 and 1) while \
                 receiving response with status: 502 Bad Gateway",
                "no_backend",
            ),
            (Code::Internal, "protocol error: hm", "request_failed"),
            (Code::Unavailable, "no healthy upstream", "no_backend"),
            (Code::Unavailable, "no learner here", "no_backend"),
            (Code::Unimplemented, "unknown service", "request_failed"),
            (
                Code::DeadlineExceeded,
                "context deadline exceeded",
                "timed_out",
            ),
            (Code::Internal, "", "request_failed"),
        ] {
            assert_eq!(said(code, message), Err(result), "{message}");
        }
    }
}
