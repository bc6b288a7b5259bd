//! An HTTPS server that answers as a kube-apiserver answers an anonymous client.

mod answer;
mod serve;

use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};
use tokio::sync::oneshot;

pub use answer::Answer;

use crate::netns::Namespace;
use crate::pki::Pair;

/// A request it received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `GET`, …
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Whether it carried an `Authorization` header.
    pub authorized: bool,
    /// Subject of the client certificate it came with, if that was signed by the cluster's CA.
    pub client: Option<String>,
}

/// Shared between the server's thread and its owner.
#[derive(Debug, Default)]
struct State {
    answers: HashMap<String, Answer>,
    /// For clients that showed a certificate or a token.
    known: HashMap<String, Answer>,
    requests: Vec<Request>,
}

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct ApiServer {
    state: Arc<Mutex<State>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ApiServer {
    /// Listens on these addresses of a namespace and serves HTTP/1.1 and HTTP/2 over TLS. Client certificates that
    /// `client_ca` signed are asked for and not insisted on, as by the real one. `/readyz`, `/livez`,
    /// `/healthz` and `/version` answer 200; everything else is forbidden, as for `system:anonymous`.
    ///
    /// # Errors
    /// When an address is taken or the certificate cannot be read.
    pub fn start(
        namespace: &Namespace,
        addresses: &[SocketAddr],
        certificate: &Pair,
        client_ca: &Path,
    ) -> Result<Self> {
        let tls = serve::tls_config(certificate, client_ca)?;
        let listen = |address: &SocketAddr| -> Result<TcpListener> {
            let listener = namespace
                .enter(|| TcpListener::bind(address))?
                .with_context(|| format!("cannot listen on {address}"))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listeners = addresses.iter().map(listen).collect::<Result<Vec<_>>>()?;
        let state = Arc::new(Mutex::new(State {
            answers: answer::of_a_ready_server(),
            known: HashMap::new(),
            requests: Vec::new(),
        }));
        let (stop, stopped) = oneshot::channel();
        let thread = {
            let state = Arc::clone(&state);
            thread::Builder::new()
                .name("lab-apiserver".to_owned())
                .spawn(move || {
                    // A server that ends early shows as refused connections in the test that uses it.
                    let _ = serve::run(listeners, &tls, &state, stopped);
                })?
        };
        Ok(Self {
            state,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Changes the answer for a path.
    pub fn answer(&self, path: &str, answer: Answer) {
        self.state().answers.insert(path.to_owned(), answer);
    }

    /// Changes the answer for a path to clients that show a certificate or a token; others stay forbidden.
    pub fn answer_known(&self, path: &str, answer: Answer) {
        self.state().known.insert(path.to_owned(), answer);
    }

    /// Everything it was asked so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.state().requests.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
