//! The one request an API server is sent.

mod answer;

use std::pin::pin;
use std::time::Duration;

use http::header::{ACCEPT, HOST, USER_AGENT};
use http::{Method, Request, StatusCode, Version};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::client::TlsStream;

use super::report::{ProbeFailure, ProbeReport, Stage};
use super::text;
use super::wire::WireStream;
use crate::target::Target;

/// The longest answer that is read: `/readyz` names each failing check, about 40 bytes each.
const LONGEST_BODY: usize = 64 * 1024;

/// How long a connection may take to give the stream back once its answer is complete.
const PARTING: Duration = Duration::from_millis(50);

/// An answer, as far as it matters.
struct Answer {
    status: StatusCode,
    body: Vec<u8>,
}

/// Sends one `GET /readyz`, without credentials, and judges the answer.
pub(super) async fn readyz(
    target: &Target,
    stream: TlsStream<WireStream>,
    until: Instant,
    report: &mut ProbeReport,
) -> Result<(), ProbeFailure> {
    let started = Instant::now();
    let failure = |result, text| ProbeFailure {
        stage: Stage::Request,
        result,
        text,
    };
    let outcome = timeout_at(until, exchange(target, stream)).await;
    let took = started.elapsed();
    report.stages.request = Some(took);
    let answer = match outcome {
        Ok(Ok(answer)) => answer,
        Ok(Err(reason)) => {
            return Err(failure(
                "request_failed",
                format!(
                    "{target} did not answer GET /readyz: {reason}; check that an API server listens there"
                ),
            ));
        }
        Err(_) => {
            return Err(failure(
                "timed_out",
                format!(
                    "{target} did not answer GET /readyz within {}: the API server hangs or is overloaded; see its log",
                    text::span(took)
                ),
            ));
        }
    };
    report.http_status = Some(answer.status.as_u16());
    match answer::complaint(answer.status, &answer.body) {
        None => Ok(()),
        Some(complaint) => Err(failure(
            complaint.result,
            format!("{target} {}", complaint.text),
        )),
    }
}

async fn exchange(target: &Target, stream: TlsStream<WireStream>) -> Result<Answer, String> {
    let explain = |error: hyper::Error| explain(&error);
    // Not `Connection: close`: a server that closes first answers our own close_notify with RST.
    let request = Request::builder()
        .method(Method::GET)
        .uri("/readyz")
        .version(Version::HTTP_11)
        .header(HOST, text::authority(target))
        .header(USER_AGENT, concat!("joinprobe/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "*/*")
        .body(Empty::<Bytes>::new())
        .map_err(|error| error.to_string())?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(explain)?;
    let answer = async move {
        let response = sender.send_request(request).await.map_err(explain)?;
        let status = response.status();
        let body = beginning(response.into_body()).await;
        Ok::<_, String>(Answer { status, body })
    };
    let mut answer = pin!(answer);
    let mut connection = pin!(connection.without_shutdown());
    // The connection only moves while it is polled, and may end before its answer has been taken.
    let (answer, ended) = tokio::select! {
        biased;
        ended = &mut connection => (answer.await?, Ok(ended)),
        answer = &mut answer => (answer?, timeout(PARTING, &mut connection).await),
    };
    if let Ok(Ok(parts)) = ended {
        // close_notify: the server then knows that nothing was cut off.
        let _ = parts.io.into_inner().shutdown().await;
    }
    Ok(answer)
}

/// As much of a body as is read at all. Where it breaks off matters little: the status was said before it.
async fn beginning(mut body: Incoming) -> Vec<u8> {
    let mut read = Vec::new();
    while read.len() < LONGEST_BODY
        && let Some(Ok(frame)) = body.frame().await
    {
        if let Some(data) = frame.data_ref() {
            read.extend_from_slice(data);
        }
    }
    read
}

/// Why a server gave no HTTP answer.
pub(crate) fn explain(error: &hyper::Error) -> String {
    if error.is_incomplete_message() || error.is_closed() {
        "it closed the connection".to_owned()
    } else if error.is_parse() {
        "what it sent is not HTTP".to_owned()
    } else {
        error.to_string()
    }
}
