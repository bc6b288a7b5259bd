//! A steady, light load of writes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Result, anyhow};

use super::EtcdClient;
use crate::netns::Namespace;
use crate::pki::ClusterPki;

/// One client that writes a key again and again. Dropping it stops it.
#[derive(Debug)]
pub struct WriteLoad {
    stop: Arc<AtomicBool>,
    writer: Option<JoinHandle<Result<u64>>>,
}

impl WriteLoad {
    /// Starts writing to a member from a namespace; `pause` lies between an answer and the next write.
    ///
    /// # Errors
    /// When the member cannot be reached.
    pub fn start(
        namespace: &Namespace,
        member: SocketAddr,
        pki: &ClusterPki,
        pause: Duration,
    ) -> Result<Self> {
        let mut client = EtcdClient::connect(namespace, member, pki)?;
        let stop = Arc::new(AtomicBool::new(false));
        let writer = {
            let stop = Arc::clone(&stop);
            thread::Builder::new()
                .name("lab-load".to_owned())
                .spawn(move || {
                    let mut written = 0;
                    while !stop.load(Ordering::Relaxed) {
                        client.put(&format!("load/{member}"), "x")?;
                        written += 1;
                        thread::sleep(pause);
                    }
                    Ok(written)
                })?
        };
        Ok(Self {
            stop,
            writer: Some(writer),
        })
    }

    /// Stops it; how often it wrote.
    ///
    /// # Errors
    /// When a write failed.
    pub fn stop(mut self) -> Result<u64> {
        self.end()
            .unwrap_or_else(|| Err(anyhow!("it was stopped before")))
    }

    fn end(&mut self) -> Option<Result<u64>> {
        self.stop.store(true, Ordering::Relaxed);
        let writer = self.writer.take()?;
        Some(
            writer
                .join()
                .unwrap_or_else(|_| Err(anyhow!("the writer panicked"))),
        )
    }
}

impl Drop for WriteLoad {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
