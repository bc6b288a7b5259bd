//! TLS servers in etcd's place that are no etcd, or not in a state to serve: each has a sentence of its own.

use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;

use anyhow::Result;
use http::{HeaderName, Request, Response};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use joinprobe_lab::pki::{Pair, Usage, Validity};
use probe_user::probe::{ClientCertificate, Stage};
use probe_user::target::Role;
use probe_user::tls::ClientTls;

use crate::server::{Tls, drain};
use crate::support::{Pki, check_failure, hasty, run, target, tls};

/// Answers every HTTP/2 request with this status, these headers and this body.
async fn http2_server(
    pair: &Pair,
    status: u16,
    headers: &[(&'static str, &str)],
    body: &'static str,
) -> Result<SocketAddr> {
    let mut response = Response::new(body);
    *response.status_mut() = status.try_into()?;
    for (name, value) in headers {
        let name = HeaderName::from_static(name);
        response.headers_mut().insert(name, value.parse()?);
    }
    Tls::new(pair)
        .serve(move |stream| {
            let response = response.clone();
            async move {
                let answer = service_fn(move |_: Request<Incoming>| {
                    let response = response.clone().map(|body| Full::new(Bytes::from(body)));
                    ready(Ok::<_, Infallible>(response))
                });
                let _ = http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), answer)
                    .await;
            }
        })
        .await
}

/// Answers every call with this gRPC status.
async fn grpc_server(pair: &Pair, status: &str, message: &str) -> Result<SocketAddr> {
    let headers = [
        ("content-type", "application/grpc"),
        ("grpc-status", status),
        ("grpc-message", message),
    ];
    http2_server(pair, 200, &headers, "").await
}

/// What a reader of etcd needs.
fn client(pki: &Pki) -> Result<ClientTls> {
    let client = pki.issue("client", Usage::Client, Validity::Now)?;
    tls(Some(&pki.ca.pair.cert), Some(&client))
}

#[test]
fn without_http2() -> Result<()> {
    run(async {
        let pki = Pki::new()?;
        let server = pki.server()?;
        let silent: &[&[u8]] = &[];
        // Nothing chosen, and an alert where nothing fits; with and without a client certificate.
        for (alpn, role) in [
            (silent, Role::EtcdClient),
            (&[b"http/1.1"], Role::EtcdClient),
        ] {
            for trust in [client(&pki)?, pki.trust()?, ClientTls::default()] {
                let mut tls = Tls::new(&server);
                tls.alpn = alpn;
                let address = tls
                    .serve(|stream| async move {
                        drain(stream).await;
                    })
                    .await?;
                let target = target(role, address);
                let report = hasty(&trust).probe(&target).await;
                check_failure(
                    &report,
                    &target,
                    "no_http2",
                    &["ALPN h2", "pass TCP through"],
                );
                assert_eq!(report.client_certificate, ClientCertificate::NotReached);
                assert_eq!(report.etcd, None);
            }
        }
        let mut other = Tls::new(&server);
        other.alpn = &[b"h2"];
        let address = other
            .serve(|stream| async move {
                drain(stream).await;
            })
            .await?;
        let target = target(Role::ApiServer, address);
        let report = hasty(&pki.trust()?).probe(&target).await;
        check_failure(&report, &target, "tls_failed", &["HTTP/1.1", "API server"]);
        Ok(())
    })?
}

#[test]
fn a_grpc_server_that_refuses() -> Result<()> {
    run(async {
        let pki = Pki::new()?;
        let server = pki.server()?;
        let client = client(&pki)?;
        for (status, message, result, parts) in [
            (
                "16",
                "missing token",
                "unauthenticated",
                ["gRPC status 16", "other credentials"],
            ),
            (
                "16",
                "etcdserver: invalid auth token",
                "unauthenticated",
                ["etcdserver: invalid auth token", "token or password"],
            ),
            (
                "7",
                "RBAC: access denied",
                "unauthenticated",
                ["gRPC status 7", "other credentials"],
            ),
            (
                "12",
                "unknown service",
                "request_failed",
                ["gRPC status 12", "no etcd"],
            ),
            (
                "14",
                "no healthy upstream",
                "no_backend",
                ["gRPC status 14", "backends"],
            ),
            (
                "4",
                "context deadline exceeded",
                "timed_out",
                ["gRPC status 4", "no quorum"],
            ),
            (
                "15",
                "etcdserver: corrupt cluster",
                "unhealthy",
                ["corrupt", "hashkv"],
            ),
            (
                "8",
                "etcdserver: too many requests",
                "unhealthy",
                ["too many", "overloaded"],
            ),
            (
                "14",
                "etcdserver: no leader",
                "unhealthy",
                ["no leader", "does not serve"],
            ),
            (
                "13",
                "",
                "request_failed",
                ["gRPC status 13", "without a word"],
            ),
        ] {
            let address = grpc_server(&server, status, message).await?;
            let target = target(Role::EtcdClient, address);
            let report = hasty(&client).probe(&target).await;
            check_failure(&report, &target, result, &parts);
            assert_eq!(
                report.failure.map(|failure| failure.stage),
                Some(Stage::Request)
            );
            assert_eq!(report.etcd, None, "{message}");
        }
        Ok(())
    })?
}

#[test]
fn a_web_server_that_speaks_http2() -> Result<()> {
    run(async {
        let pki = Pki::new()?;
        let server = pki.server()?;
        let client = client(&pki)?;
        let page = [("content-type", "text/html")];
        for (status, result, part) in [
            (200, "request_failed", "no etcd"),
            (403, "unauthenticated", "HTTP 403"),
            (503, "no_backend", "without a healthy etcd behind it"),
        ] {
            let address = http2_server(&server, status, &page, "<html>hello</html>").await?;
            let target = target(Role::EtcdClient, address);
            let report = hasty(&client).probe(&target).await;
            check_failure(&report, &target, result, &[part]);
            assert_eq!(report.etcd, None, "{status}");
        }
        Ok(())
    })?
}

#[test]
fn long_words_are_shortened_visibly() -> Result<()> {
    run(async {
        let pki = Pki::new()?;
        let server = pki.server()?;
        let address = grpc_server(&server, "14", &"etcdserver: x".repeat(40)).await?;
        let target = target(Role::EtcdClient, address);
        let report = hasty(&client(&pki)?).probe(&target).await;
        check_failure(&report, &target, "unhealthy", &["etcdserver: x", "…`"]);
        Ok(())
    })?
}
