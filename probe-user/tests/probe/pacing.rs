//! How the ClientHello is written.

use std::time::Duration;

use anyhow::Result;
use probe_user::probe::{Pacing, TlsState};
use probe_user::target::Role;

use crate::server::{Tls, drain};
use crate::support::{Pki, Setup, run, target};

#[test]
fn a_second_client_hello() -> Result<()> {
    run(async {
        let pki = Pki::new()?;
        let server = pki.server()?;
        let mut unusual = Tls::new(&server);
        unusual.unusual_group = true;
        let address = unusual
            .serve(|stream| async move {
                drain(stream).await;
            })
            .await?;
        let report = Setup::new(&pki.trust()?)
            .probe(&target(Role::EtcdPeer, address))
            .await;
        assert_eq!((report.failure, report.tls), (None, TlsState::Verified));
        assert_eq!(report.chunks, 16);
        Ok(())
    })?
}

#[test]
fn stopping_early() -> Result<()> {
    run(async {
        let pki = Pki::new()?;
        let server = pki.server()?;
        let address = Tls::new(&server)
            .serve(|stream| async move {
                drain(stream).await;
            })
            .await?;
        let target = target(Role::EtcdPeer, address);
        let mut setup = Setup::new(&pki.trust()?);
        let decided = |_: &[u32]| true;
        setup.pacing.enough = Some(&decided);
        assert_eq!(setup.probe(&target).await.chunks, Pacing::MIN_CHUNKS);
        setup.pacing = Pacing {
            max_chunks: 9,
            enough: None,
        };
        assert_eq!(setup.probe(&target).await.chunks, 9);
        setup.pacing = Pacing::off();
        assert_eq!(setup.probe(&target).await.chunks, 1);
        // So little time that an answer is worth more than samples.
        setup.pacing = Pacing::default();
        setup.patience = Duration::from_millis(250);
        let report = setup.probe(&target).await;
        assert!(report.chunks < Pacing::MIN_CHUNKS, "{}", report.chunks);
        Ok(())
    })?
}
