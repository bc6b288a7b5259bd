//! The HTTP server: small answers, one per connection, nothing a scraper can hold on to.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use super::format::Format;
use super::listen::Shared;

/// Connections served at a time. One more cuts off the oldest: an answer takes milliseconds, so that one is slow.
const CONNECTIONS: usize = 16;
/// A scraper that has not sent its request by then is cut off.
const REQUEST_TIME: Duration = Duration::from_secs(5);
/// A scraper that has not taken the answer by then is cut off. Prometheus itself gives up after 10 s.
const WHOLE_TIME: Duration = Duration::from_secs(15);
/// hyper's smallest buffer that still takes any scraper's headers.
const REQUEST_BYTES: usize = 16 * 1024;
const HEADERS: usize = 64;

/// Accepts connections until the task is aborted.
pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut served: VecDeque<AbortHandle> = VecDeque::with_capacity(CONNECTIONS);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                served.retain(|connection| !connection.is_finished());
                if served.len() == CONNECTIONS
                    && let Some(oldest) = served.pop_front()
                {
                    oldest.abort();
                }
                let shared = Arc::clone(&shared);
                let task = tokio::spawn(async move {
                    // Too slow or not HTTP: the scraper notices, nobody else has to.
                    let _ = tokio::time::timeout(WHOLE_TIME, connection(stream, shared)).await;
                });
                served.push_back(task.abort_handle());
            }
            Err(error) => {
                log::debug!("a scraper's connection could not be accepted: {error}");
                // Out of file descriptors: the next attempt would fail at once.
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(answer(&request, &shared)) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIME)
        .keep_alive(false)
        .max_buf_size(REQUEST_BYTES)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        log::debug!("a scraper's request was refused: {error}");
    }
}

fn answer(request: &Request<Incoming>, shared: &Shared) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refusal = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
        refusal
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refusal;
    }
    match request.uri().path() {
        "/metrics" => metrics(request, shared),
        "/healthz" => match shared.overdue() {
            None => plain(StatusCode::OK, "ok\n"),
            Some(silence) => plain(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("no report for {} s\n", silence.as_secs()),
            ),
        },
        _ => plain(
            StatusCode::NOT_FOUND,
            "joinprobe serves /metrics and /healthz\n",
        ),
    }
}

fn metrics(request: &Request<Incoming>, shared: &Shared) -> Response<Full<Bytes>> {
    // Several Accept headers mean the same as one list.
    let accept: Vec<&str> = request
        .headers()
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    let format = Format::negotiate(&accept.join(","));
    match shared.encoded(format) {
        Ok(bytes) => respond(StatusCode::OK, format.content_type(), bytes),
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, error + "\n"),
    }
}

fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    respond(status, "text/plain; charset=utf-8", text.into())
}

fn respond(status: StatusCode, content_type: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
