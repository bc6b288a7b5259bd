//! How the ClientHello is written.

use std::cell::RefCell;
use std::time::Duration;

use anyhow::Result;
use probe_user::probe::{Marker, Pacing, TlsState};
use probe_user::target::Role;
use tokio::time::timeout;

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

/// Keeps what it is told.
#[derive(Default)]
struct Told(RefCell<Vec<(&'static str, u64)>>);

impl Marker for Told {
    fn mark(&self, cookie: u64) {
        self.0.borrow_mut().push(("mark", cookie));
    }

    fn end_pacing(&self, cookie: u64) {
        self.0.borrow_mut().push(("end", cookie));
    }

    fn forget(&self, cookie: u64) {
        self.0.borrow_mut().push(("forget", cookie));
    }

    fn path_progress(&self) -> (u64, u32) {
        (0, 0)
    }
}

#[test]
fn every_mark_is_taken_back() -> Result<()> {
    run(async {
        let pki = Pki::new()?;
        let server = pki.server()?;
        let address = Tls::new(&server)
            .serve(|stream| async move {
                drain(stream).await;
            })
            .await?;
        let told = Told::default();
        let mut setup = Setup::new(&pki.trust()?);
        setup.marker = &told;
        let target = target(Role::EtcdPeer, address);
        setup.probe(&target).await;
        let words: Vec<_> = told.0.take();
        let cookie = words[0].1;
        assert_ne!(cookie, 0);
        assert_eq!(
            words,
            [("mark", cookie), ("end", cookie), ("forget", cookie)]
        );

        // Given up at any moment, between any two steps.
        for given_up_after in (0..420).step_by(35) {
            let probe = setup.probe(&target);
            let _ = timeout(Duration::from_millis(given_up_after), probe).await;
            let words: Vec<_> = told.0.take();
            let marked = words.iter().filter(|(word, _)| *word == "mark").count();
            let forgotten = words.iter().filter(|(word, _)| *word == "forget").count();
            assert_eq!(marked, forgotten, "{words:?}");
        }
        Ok(())
    })?
}
