//! The probe against a real etcd.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod probe_support;

use probe_support::etcd::{Choices, Etcd};
use probe_support::network::{TcpCounts, own_network};
use probe_support::pki::Pki;
use probe_support::{Setup, run, target};
use probe_user::probe::{ClientCertificate, TlsState};
use probe_user::target::Role;

#[test]
fn reads_once_and_parts_politely() {
    if !own_network("reads_once_and_parts_politely") {
        return;
    }
    let pki = Pki::new("etcd-ca");
    let server = pki.issue("server", &["127.0.0.1", "localhost"]);
    let client = pki.issue("client", &[]);
    let etcd = Etcd::start(&pki, &server, Choices::default());
    let setup = Setup {
        tls: pki.trust_and_show(&client),
        ..Setup::default()
    };
    let target = target(Role::EtcdClient, "127.0.0.1", etcd.client);
    let before = TcpCounts::now();
    let report = run(setup.probe(&target));
    let after = TcpCounts::now();
    println!("{report:#?}\n{before:?}\n{after:?}");
    assert_eq!(report.failure, None);
    assert_eq!(report.tls, TlsState::Verified);
    assert_eq!(report.client_certificate, ClientCertificate::Accepted);
    assert_eq!(report.chunks, 16);
    let answer = report.etcd.unwrap();
    assert_eq!(answer.result, "ok");
    assert_eq!(answer.revision, Some(1));
    assert!(answer.member_id.is_some_and(|id| id != 0));
    assert_eq!(after.active_opens - before.active_opens, 1);
    assert_eq!(after.resets_sent, before.resets_sent);
}
