//! A client that reads and writes keys, for load of the tests' own and to see what an application sees.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::runtime::Runtime;

use crate::netns::Namespace;
use crate::pki::ClusterPki;

/// One connection to one member, over etcd's JSON gateway (`/v3/kv/…`), kept open.
#[derive(Debug)]
pub struct EtcdClient {
    runtime: Runtime,
    requests: SendRequest<Full<Bytes>>,
    host: String,
}

impl EtcdClient {
    /// Connects from a namespace, with the cluster's client certificate.
    ///
    /// # Errors
    /// When the member cannot be reached or refuses the certificate.
    pub fn connect(namespace: &Namespace, member: SocketAddr, pki: &ClusterPki) -> Result<Self> {
        let stream = namespace.enter(|| TcpStream::connect(member))??;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let config = Arc::new(config(pki)?);
        let requests = runtime.block_on(async {
            let stream = tokio::net::TcpStream::from_std(stream)?;
            let name = ServerName::from(member.ip());
            let connector = tokio_rustls::TlsConnector::from(config);
            let stream = connector.connect(name, stream).await?;
            let (requests, connection) = handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            anyhow::Ok(requests)
        })?;
        Ok(Self {
            runtime,
            requests,
            host: member.to_string(),
        })
    }

    /// Writes a key; returns how long the answer took.
    ///
    /// # Errors
    /// When the member does not answer, or refuses.
    pub fn put(&mut self, key: &str, value: &str) -> Result<Duration> {
        let body = serde_json::json!({ "key": encode(key), "value": encode(value) });
        self.call("/v3/kv/put", &body)
    }

    /// Reads a key, linearizably; returns how long the answer took.
    ///
    /// # Errors
    /// When the member does not answer, or refuses.
    pub fn get(&mut self, key: &str) -> Result<Duration> {
        self.call("/v3/kv/range", &serde_json::json!({ "key": encode(key) }))
    }

    fn call(&mut self, path: &str, body: &serde_json::Value) -> Result<Duration> {
        let request = hyper::Request::post(path)
            .header("host", &self.host)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body.to_string())))?;
        let requests = &mut self.requests;
        self.runtime.block_on(async {
            requests.ready().await?;
            let start = Instant::now();
            let response = requests.send_request(request).await?;
            let status = response.status();
            let body = response.into_body().collect().await?.to_bytes();
            let elapsed = start.elapsed();
            ensure!(
                status.is_success(),
                "etcd answered {status}: {}",
                String::from_utf8_lossy(&body)
            );
            Ok(elapsed)
        })
    }
}

fn config(pki: &ClusterPki) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&fs::read(
        &pki.etcd.pair.cert,
    )?)?)?;
    let pair = &pki.healthcheck_client;
    let chain = CertificateDer::pem_file_iter(&pair.cert)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(&pair.key)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .context("the client certificate does not fit its key")?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Base64 (RFC 4648), as the gateway wants bytes to be.
fn encode(text: &str) -> String {
    base64::engine::Engine::encode(&base64::engine::general_purpose::STANDARD, text)
}
