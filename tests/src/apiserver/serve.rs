//! The server's thread.

use std::convert::Infallible;
use std::future::ready;
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::State;
use super::answer::Answer;
use crate::pki::Pair;

pub(super) fn tls_config(pair: &Pair, client_ca: &Path) -> Result<Arc<ServerConfig>> {
    let chain = CertificateDer::pem_file_iter(&pair.cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("cannot read {}", pair.cert.display()))?;
    let key = PrivateKeyDer::from_pem_file(&pair.key)
        .with_context(|| format!("cannot read {}", pair.key.display()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(
        CertificateDer::from_pem_file(client_ca)
            .with_context(|| format!("cannot read {}", client_ca.display()))?,
    )?;
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

pub(super) fn run(
    listeners: Vec<TcpListener>,
    tls: &Arc<ServerConfig>,
    state: &Arc<Mutex<State>>,
    stopped: oneshot::Receiver<()>,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut accepting = JoinSet::new();
        for listener in listeners {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            accepting.spawn(accept(
                listener,
                TlsAcceptor::from(Arc::clone(tls)),
                Arc::clone(state),
            ));
        }
        // Ends when the sender is dropped.
        let _ = stopped.await;
        Ok(())
    })
}

async fn accept(listener: tokio::net::TcpListener, tls: TlsAcceptor, state: Arc<Mutex<State>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        // As Go's servers do: otherwise the answer waits for the client's delayed ACK of the session tickets.
        let _ = stream.set_nodelay(true);
        let (tls, state) = (tls.clone(), Arc::clone(&state));
        connections.spawn(async move {
            // What the client does wrong is its test's business.
            let Ok(stream) = tls.accept(stream).await else {
                return;
            };
            let shown = stream.get_ref().1.peer_certificates();
            let client = shown.and_then(|chain| subject(chain.first()?));
            let service = service_fn(move |request| {
                ready(Ok::<_, Infallible>(respond(
                    &request,
                    client.clone(),
                    &state,
                )))
            });
            let _ = Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
        while connections.try_join_next().is_some() {}
    }
}

fn subject(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    Some(certificate.subject().to_string())
}

fn respond(
    request: &Request<Incoming>,
    client: Option<String>,
    state: &Mutex<State>,
) -> Response<Full<Bytes>> {
    let (method, path) = (
        request.method().to_string(),
        request.uri().path().to_owned(),
    );
    let answer = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let authorized = request.headers().contains_key(AUTHORIZATION);
        let is_known = authorized || client.is_some();
        state.requests.push(super::Request {
            method: method.clone(),
            path: request
                .uri()
                .path_and_query()
                .map_or_else(|| path.clone(), ToString::to_string),
            authorized,
            client,
        });
        let known = state.known.get(&path).filter(|_| is_known);
        known.or_else(|| state.answers.get(&path)).cloned()
    };
    let answer = answer.unwrap_or_else(|| Answer::forbidden(&method, &path));
    let mut response = Response::new(Full::new(Bytes::from(answer.body)));
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(
        CONTENT_TYPE,
        hyper::header::HeaderValue::from_static(answer.content_type),
    );
    response
}
