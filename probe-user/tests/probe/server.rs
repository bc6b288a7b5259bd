//! Servers that behave as each test wants, on a loopback port of their own.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use joinprobe_lab::pki::Pair;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Accepts connections and hands each to `handle`.
pub(crate) async fn serve<F>(handle: impl Fn(TcpStream) -> F + Send + 'static) -> Result<SocketAddr>
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(handle(stream));
        }
    });
    Ok(address)
}

/// How a TLS server is set up.
pub(crate) struct Tls<'a> {
    pub(crate) pair: &'a Pair,
    pub(crate) versions: &'a [&'static SupportedProtocolVersion],
    /// Clients must show a certificate that this CA signed.
    pub(crate) client_ca: Option<&'a Path>,
    pub(crate) alpn: &'a [&'a [u8]],
    pub(crate) tickets: usize,
    /// Offers no key exchange a client guesses first, which costs a `HelloRetryRequest`.
    pub(crate) unusual_group: bool,
}

impl<'a> Tls<'a> {
    pub(crate) fn new(pair: &'a Pair) -> Self {
        Self {
            pair,
            versions: rustls::ALL_VERSIONS,
            client_ca: None,
            alpn: &[b"h2", b"http/1.1"],
            tickets: 2,
            unusual_group: false,
        }
    }

    fn config(&self) -> Result<ServerConfig> {
        let mut provider = rustls::crypto::ring::default_provider();
        if self.unusual_group {
            provider.kx_groups = vec![rustls::crypto::ring::kx_group::SECP384R1];
        }
        let provider = Arc::new(provider);
        let chain = vec![CertificateDer::from_pem_file(&self.pair.cert)?];
        let key = PrivateKeyDer::from_pem_file(&self.pair.key)?;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(self.versions)?;
        let builder = match self.client_ca {
            Some(ca) => {
                let mut roots = RootCertStore::empty();
                roots.add(CertificateDer::from_pem_file(ca)?)?;
                builder.with_client_cert_verifier(
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                        .build()?,
                )
            }
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key)?;
        config.alpn_protocols = self.alpn.iter().map(|name| name.to_vec()).collect();
        config.send_tls13_tickets = self.tickets;
        Ok(config)
    }

    /// Serves TLS; `handle` gets the stream after the handshake.
    pub(crate) async fn serve<F>(
        &self,
        handle: impl Fn(TlsStream<TcpStream>) -> F + Clone + Send + 'static,
    ) -> Result<SocketAddr>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let acceptor = TlsAcceptor::from(Arc::new(self.config()?));
        serve(move |stream| {
            let (acceptor, handle) = (acceptor.clone(), handle.clone());
            async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    handle(stream).await;
                }
            }
        })
        .await
    }
}

/// Reads until there is nothing left to read, and says how much that was.
pub(crate) async fn drain(mut stream: impl AsyncReadExt + Unpin) -> usize {
    let mut total = 0;
    let mut buffer = vec![0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        total += read;
    }
    total
}
