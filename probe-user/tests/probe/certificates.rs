//! Certificates of servers that cannot be trusted, and of clients that a server does not want.

use std::time::{Duration, Instant};

use anyhow::Result;
use joinprobe_lab::pki::{Usage, Validity};
use probe_user::probe::{ClientCertificate, TlsState};
use probe_user::target::Role;
use probe_user::tls::ClientTls;
use rustls::version::{TLS12, TLS13};

use crate::server::{Tls, drain};
use crate::support::{Pki, check_failure, hasty, named, run, target, tls};

#[test]
fn server_certificates() -> Result<()> {
    run(async {
        let pki = Pki::new()?;
        let expired = pki.issue("expired", Usage::Server, Validity::Expired)?;
        let future = pki.issue("future", Usage::Server, Validity::NotYet)?;
        let client = pki.issue("client-only", Usage::Client, Validity::Now)?;
        let other = Pki::new()?;
        let foreign = other.server()?;
        let trust = pki.trust()?;
        for (pair, result, said) in [
            (&expired, "not_valid_now", "expired on 20"),
            (&future, "not_valid_now", "is not valid before 20"),
            (&client, "untrusted", "not meant for servers"),
            (&foreign, "untrusted", "CN=test-ca"),
        ] {
            for versions in [[&TLS12], [&TLS13]] {
                let mut server = Tls::new(pair);
                server.versions = &versions;
                let address = server
                    .serve(|stream| async move {
                        drain(stream).await;
                    })
                    .await?;
                let target = target(Role::EtcdClient, address);
                let report = hasty(&trust).probe(&target).await;
                check_failure(&report, &target, result, &[said]);
                assert!(report.server_certificate.is_some());
                // What is not verified is not judged.
                let report = hasty(&ClientTls::default()).probe(&target).await;
                assert_eq!((report.failure, report.tls), (None, TlsState::Unverified));
            }
        }
        let server = pki.server()?;
        let address = Tls::new(&server)
            .serve(|stream| async move {
                drain(stream).await;
            })
            .await?;
        let by_name = named(Role::EtcdClient, "server.example.", address);
        assert_eq!(hasty(&trust).probe(&by_name).await.failure, None);
        let wrong = named(Role::EtcdClient, "other.example", address);
        let report = hasty(&trust).probe(&wrong).await;
        check_failure(
            &report,
            &wrong,
            "name_mismatch",
            &["127.0.0.1, server.example", "not for other.example"],
        );
        let odd = named(Role::EtcdClient, "not a name", address);
        let report = hasty(&trust).probe(&odd).await;
        assert_eq!(
            report.failure.map(|failure| failure.result),
            Some("name_mismatch")
        );
        Ok(())
    })?
}

#[test]
fn client_certificates() -> Result<()> {
    run(async {
        let pki = Pki::new()?;
        let server = pki.server()?;
        let good = pki.issue("client", Usage::Client, Validity::Now)?;
        let expired = pki.issue("old-client", Usage::Client, Validity::Expired)?;
        let other = Pki::new()?;
        let foreign = other.issue("client", Usage::Client, Validity::Now)?;
        let ca = pki.ca.pair.cert.as_path();
        for versions in [[&TLS12], [&TLS13]] {
            for tickets in [0, 2] {
                let mut demanding = Tls::new(&server);
                demanding.client_ca = Some(ca);
                demanding.versions = &versions;
                demanding.tickets = tickets;
                let address = demanding
                    .serve(|stream| async move {
                        drain(stream).await;
                    })
                    .await?;
                let target = target(Role::EtcdPeer, address);
                let expect = async |tls: &ClientTls, expected: &str| {
                    let mut setup = hasty(tls);
                    setup.patience = Duration::from_secs(5);
                    let started = Instant::now();
                    let report = setup.probe(&target).await;
                    assert!(
                        started.elapsed() < Duration::from_secs(2),
                        "took {:?}",
                        started.elapsed()
                    );
                    assert_eq!(report.failure, None);
                    assert!(report.stages.tls.is_some());
                    let certificate = format!("{:?}", report.client_certificate);
                    assert!(certificate.starts_with(expected), "{certificate}");
                };
                expect(&tls(Some(ca), None)?, "NotGiven").await;
                expect(&tls(None, None)?, "NotGiven").await;
                expect(&tls(None, Some(&good))?, "Withheld").await;
                expect(&tls(Some(ca), Some(&good))?, "Accepted").await;
                expect(
                    &tls(Some(ca), Some(&expired))?,
                    "Rejected(\"certificate expired",
                )
                .await;
                expect(&tls(Some(ca), Some(&foreign))?, "Rejected(").await;
            }
        }
        let mut unasked = Tls::new(&server);
        unasked.tickets = 0;
        let address = unasked
            .serve(|stream| async move {
                drain(stream).await;
            })
            .await?;
        let report = hasty(&tls(Some(ca), Some(&good))?)
            .probe(&target(Role::EtcdPeer, address))
            .await;
        assert_eq!(report.client_certificate, ClientCertificate::Accepted);
        Ok(())
    })?
}
