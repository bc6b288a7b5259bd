//! Servers that speak something else, break off, hang or never stop: each must come to one clear sentence, in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use probe_user::probe::{Pacing, TlsState};
use probe_user::target::Role;
use probe_user::tls::ClientTls;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::server::{Tls, drain, serve};
use crate::support::{Pki, check_failure, hasty, run, target};

#[test]
fn without_tls() -> Result<()> {
    run(async {
        let nobody = ClientTls::default();
        let banner = serve(|mut stream| async move {
            let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n").await;
            drain(stream).await;
        })
        .await?;
        let web = serve(|mut stream| async move {
            let _ = stream.read(&mut [0; 512]).await;
            let _ = stream
                .write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
                .await;
        })
        .await?;
        let few = serve(|mut stream| async move {
            let _ = stream.write_all(b"ok").await;
            drain(stream).await;
        })
        .await?;
        for (address, said, cause) in [
            (banner, "SSH-2.0", "it is no etcd"),
            (web, "HTTP/1.1 400", "--listen-client-urls"),
            (few, "`ok`", "it is no etcd"),
        ] {
            for pacing in [Pacing::off(), Pacing::default()] {
                let target = target(Role::EtcdClient, address);
                let mut setup = hasty(&nobody);
                setup.pacing = pacing;
                let report = setup.probe(&target).await;
                check_failure(&report, &target, "no_tls", &[said, cause]);
                assert_eq!(report.tls, TlsState::NotReached);
            }
        }
        Ok(())
    })?
}

#[test]
fn breaking_off() -> Result<()> {
    run(async {
        let nobody = ClientTls::default();
        let closing = serve(|stream| async move { drop(stream) }).await?;
        let target_closing = target(Role::ApiServer, closing);
        let mut setup = hasty(&nobody);
        setup.pacing = Pacing::default();
        let report = setup.probe(&target_closing).await;
        check_failure(
            &report,
            &target_closing,
            "reset",
            &["ClientHello", "--no-pacing"],
        );

        let resetting = serve(|stream| async move {
            let _ = stream.set_zero_linger();
        })
        .await?;
        let target_resetting = target(Role::ApiServer, resetting);
        let report = setup.probe(&target_resetting).await;
        check_failure(&report, &target_resetting, "reset", &["load balancer"]);

        // Hears everything, then closes: with nothing unread that is a FIN, not a RST.
        let leaving = serve(|mut stream| async move {
            let _ = stream.read(&mut [0; 4096]).await;
        })
        .await?;
        let target_leaving = target(Role::EtcdClient, leaving);
        let report = hasty(&nobody).probe(&target_leaving).await;
        check_failure(
            &report,
            &target_leaving,
            "no_tls",
            &["closed the connection", "plain http"],
        );

        let alerting = serve(|mut stream| async move {
            let _ = stream.read(&mut [0; 4096]).await;
            // A fatal handshake_failure, RFC 8446 section 6.
            let _ = stream.write_all(&[0x15, 3, 3, 0, 2, 2, 40]).await;
        })
        .await?;
        let target_alerting = target(Role::EtcdPeer, alerting);
        let report = hasty(&nobody).probe(&target_alerting).await;
        check_failure(
            &report,
            &target_alerting,
            "tls_failed",
            &["handshake failure", "cipher"],
        );

        let halfway = serve(|mut stream| async move {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(&[0x16, 3, 3, 0, 100, 2, 0, 0, 96]).await;
        })
        .await?;
        let target_halfway = target(Role::EtcdClient, halfway);
        let report = hasty(&nobody).probe(&target_halfway).await;
        check_failure(&report, &target_halfway, "tls_failed", &["in the middle"]);
        Ok(())
    })?
}

#[test]
fn hanging() -> Result<()> {
    run(async {
        let nobody = ClientTls::default();
        let silent = serve(|stream| async move {
            drain(stream).await;
        })
        .await?;
        let target_silent = target(Role::EtcdClient, silent);
        let report = hasty(&nobody).probe(&target_silent).await;
        check_failure(
            &report,
            &target_silent,
            "timed_out",
            &["did not answer the TLS ClientHello"],
        );

        let halfway = serve(|mut stream| async move {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(&[0x16, 3, 3, 0, 100, 2, 0, 0, 96]).await;
            drain(stream).await;
        })
        .await?;
        let target_halfway = target(Role::EtcdClient, halfway);
        let report = hasty(&nobody).probe(&target_halfway).await;
        check_failure(
            &report,
            &target_halfway,
            "timed_out",
            &["in the middle", "MTU"],
        );
        Ok(())
    })?
}

#[test]
fn endless() -> Result<()> {
    run(async {
        let nobody = ClientTls::default();
        let noise =
            serve(
                |mut stream| async move { while stream.write_all(&[b'x'; 4096]).await.is_ok() {} },
            )
            .await?;
        let target_noise = target(Role::EtcdClient, noise);
        let report = hasty(&nobody).probe(&target_noise).await;
        check_failure(&report, &target_noise, "no_tls", &["xxxx…`"]);

        let records = serve(|mut stream| async move {
            let _ = stream.read(&mut [0; 4096]).await;
            // Handshake records that never complete a message.
            let mut record = vec![0x16, 3, 3, 0x10, 0];
            record.resize(5 + 0x1000, 0x0b);
            while stream.write_all(&record).await.is_ok() {}
        })
        .await?;
        let target_records = target(Role::EtcdClient, records);
        let report = hasty(&nobody).probe(&target_records).await;
        check_failure(&report, &target_records, "tls_failed", &[]);

        let pki = Pki::new()?;
        let server = pki.server()?;
        let body = Tls::new(&server)
            .serve(|mut stream| async move {
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream
                    .write_all(b"HTTP/1.1 503 No\r\n\r\n[-]etcd failed\n")
                    .await;
                while stream.write_all(&[b'y'; 4096]).await.is_ok() {}
            })
            .await?;
        let target_body = target(Role::ApiServer, body);
        let report = hasty(&pki.trust()?).probe(&target_body).await;
        check_failure(
            &report,
            &target_body,
            "unhealthy",
            &["503", "[-]etcd failed"],
        );

        let header = Tls::new(&server)
            .serve(|mut stream| async move {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
                while stream.write_all(b"a: b\r\n").await.is_ok() {}
            })
            .await?;
        let target_header = target(Role::ApiServer, header);
        let report = hasty(&pki.trust()?).probe(&target_header).await;
        check_failure(&report, &target_header, "request_failed", &["/readyz"]);
        Ok(())
    })?
}

/// Noise of every length, with and without a TLS record's beginning, then silence or the end.
#[test]
fn noise() -> Result<()> {
    run(async {
        let nobody = ClientTls::default();
        let round = Arc::new(AtomicU64::new(0));
        let address = serve(move |mut stream| {
            let mut random = fastrand::Rng::with_seed(round.fetch_add(1, Ordering::Relaxed));
            async move {
                let mut bytes = vec![0; random.usize(0..600)];
                random.fill(&mut bytes);
                if random.bool() {
                    let _ = stream.read(&mut [0; 4096]).await;
                }
                // A handshake, alert or data record of a likely length, or none.
                if random.bool() && bytes.len() > 5 {
                    let length = random.u8(0..250);
                    bytes[..5].copy_from_slice(&[random.u8(0x14..0x18), 3, 3, 0, length]);
                }
                let _ = stream.write_all(&bytes).await;
                if random.bool() {
                    drain(stream).await;
                }
            }
        })
        .await?;
        for index in 0..150 {
            let target = target(Role::EtcdClient, address);
            let mut setup = hasty(&nobody);
            setup.patience = Duration::from_millis(250);
            let report = setup.probe(&target).await;
            let failure = report.failure.context("noise was taken for a server")?;
            let words = ["no_tls", "tls_failed", "timed_out", "too_short", "reset"];
            assert!(words.contains(&failure.result), "{index}: {failure:?}");
            assert!(failure.text.contains(&target.to_string()));
            assert!(!failure.text.contains(char::is_control), "{}", failure.text);
        }
        Ok(())
    })?
}
