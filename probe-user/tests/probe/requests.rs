//! What follows TLS: answers to GET /readyz, and ports that are no etcd.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use joinprobe_lab::pki::{Pair, Usage, Validity};
use probe_user::probe::{Extent, Stage, TlsState};
use probe_user::target::Role;
use probe_user::tls::ClientTls;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::server::{Tls, drain};
use crate::support::{Pki, check_failure, hasty, run, target, tls};

/// Answers every HTTP/1 request with this.
async fn http(pair: &Pair, answer: &'static str) -> Result<SocketAddr> {
    Tls::new(pair)
        .serve(move |mut stream| async move {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        })
        .await
}

#[test]
fn answers_to_readyz() -> Result<()> {
    run(async {
        let pki = Pki::new()?;
        let server = pki.server()?;
        let trust = pki.trust()?;
        for (answer, status) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200),
            (
                "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
                401,
            ),
            ("HTTP/1.1 403 Forbidden\r\n\r\n{\"kind\":\"Status\"}", 403),
        ] {
            let address = http(&server, answer).await?;
            let report = hasty(&trust).probe(&target(Role::ApiServer, address)).await;
            assert_eq!(report.failure, None, "{answer}");
            assert_eq!(report.http_status, Some(status));
            assert_eq!(report.tls, TlsState::Verified);
            assert!(report.stages.request.is_some());
        }
        Ok(())
    })?
}

#[test]
fn answers_that_fail() -> Result<()> {
    run(async {
        let pki = Pki::new()?;
        let server = pki.server()?;
        let trust = pki.trust()?;
        for (answer, status, result, said) in [
            (
                "HTTP/1.1 500 Internal Server Error\r\n\r\n[+]ping ok\n[-]etcd failed: reason withheld\n",
                Some(500),
                "unhealthy",
                "HTTP 500: [-]etcd failed",
            ),
            (
                "HTTP/1.1 503 Unavailable\r\n\r\nno healthy upstream",
                Some(503),
                "no_backend",
                "no healthy upstream",
            ),
            (
                "HTTP/1.1 503 Unavailable\r\nContent-Type: text/html\r\n\r\n<html><body><h1>503 Service \
                 Unavailable</h1>\nNo server is available to handle this request.\n</body></html>\n",
                Some(503),
                "no_backend",
                "load balancer without a healthy API server behind it (HTTP 503: 503 Service Unavailable)",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<!DOCTYPE html><title>Sign in</title>",
                Some(200),
                "request_failed",
                "web page (HTTP 200: Sign in)",
            ),
            (
                "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n",
                Some(502),
                "no_backend",
                "no text",
            ),
            (
                "HTTP/1.1 429 Slow\r\n\r\nToo many requests",
                Some(429),
                "unhealthy",
                "overloaded",
            ),
            (
                "HTTP/1.1 404 Not Found\r\n\r\n404 page",
                Some(404),
                "request_failed",
                "HTTP 404",
            ),
            (
                "HTTP/1.1 302 Found\r\nLocation: /login\r\n\r\n",
                Some(302),
                "request_failed",
                "HTTP 302",
            ),
            (
                "220 mail.example ESMTP\r\n",
                None,
                "request_failed",
                "not HTTP",
            ),
            ("", None, "request_failed", "closed the connection"),
            (
                "HTTP/1.1 200 OK\r\nContent-Le",
                None,
                "request_failed",
                "closed the connection",
            ),
        ] {
            let address = http(&server, answer).await?;
            let target = target(Role::ApiServer, address);
            let report = hasty(&trust).probe(&target).await;
            check_failure(&report, &target, result, &[said]);
            assert_eq!(report.http_status, status);
            assert_eq!(
                report.failure.map(|failure| failure.stage),
                Some(Stage::Request)
            );
        }
        let mute = Tls::new(&server)
            .serve(|stream| async move {
                drain(stream).await;
            })
            .await?;
        let target_mute = target(Role::ApiServer, mute);
        let report = hasty(&trust).probe(&target_mute).await;
        check_failure(&report, &target_mute, "timed_out", &["GET /readyz"]);

        Ok(())
    })?
}

#[test]
fn unverified_or_unasked() -> Result<()> {
    run(async {
        let pki = Pki::new()?;
        let server = pki.server()?;
        let trust = pki.trust()?;
        // Nothing verifies it, and that is a state, not a failure.
        let address = http(&server, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await?;
        let report = hasty(&ClientTls::default())
            .probe(&target(Role::ApiServer, address))
            .await;
        assert_eq!((report.failure, report.tls), (None, TlsState::Unverified));
        assert_eq!(report.http_status, Some(200));

        let mut setup = hasty(&trust);
        setup.extent = Extent::PathOnly;
        let report = setup.probe(&target(Role::ApiServer, address)).await;
        assert_eq!((report.failure, report.http_status), (None, None));
        assert!(report.stages.tls.is_some());
        Ok(())
    })?
}

#[test]
fn not_an_etcd() -> Result<()> {
    run(async {
        let pki = Pki::new()?;
        let server = pki.server()?;
        let client = pki.issue("client", Usage::Client, Validity::Now)?;
        let tls = tls(Some(&pki.ca.pair.cert), Some(&client))?;
        let garbage = Tls::new(&server)
            .serve(|mut stream| async move {
                let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
                drain(stream).await;
            })
            .await?;
        let closing = Tls::new(&server)
            .serve(|mut stream| async move {
                let _ = stream.read(&mut [0; 10]).await;
            })
            .await?;
        for address in [garbage, closing] {
            let target = target(Role::EtcdClient, address);
            let report = hasty(&tls).probe(&target).await;
            check_failure(&report, &target, "request_failed", &["reading from"]);
        }
        let mute = Tls::new(&server)
            .serve(|stream| async move {
                drain(stream).await;
            })
            .await?;
        let target_mute = target(Role::EtcdClient, mute);
        let mut setup = hasty(&tls);
        setup.patience = Duration::from_secs(5);
        let report = setup.probe(&target_mute).await;
        check_failure(
            &report,
            &target_mute,
            "timed_out",
            &["linearizable read within 2.0 s"],
        );
        Ok(())
    })?
}
