//! A connection of its own to a server of the cluster.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::probe::{Wire, WireStream};
use crate::tls::{ClientTls, Session};

/// How long the layers above may take to write their last words.
const GOODBYE: Duration = Duration::from_millis(200);
/// How long the server may take to close its side.
const CLOSING: Duration = Duration::from_millis(500);

/// An established TLS connection.
pub(super) struct Connection {
    pub(super) stream: TlsStream<WireStream>,
    /// What was learned about the server.
    pub(super) session: Session,
    pub(super) closing: Closing,
}

/// What is needed to close politely once the stream has been dropped.
pub(super) struct Closing {
    wire: Arc<Wire>,
    dropped: oneshot::Receiver<()>,
}

impl Closing {
    /// Waits for the stream to be dropped, then for the server to close too.
    pub(super) async fn close(self, deadline: Instant) {
        let _ = timeout_at(deadline.min(Instant::now() + GOODBYE), self.dropped).await;
        self.wire
            .close(deadline.min(Instant::now() + CLOSING))
            .await;
    }
}

/// Connects to `address`, where a certificate for `name` is expected.
///
/// # Errors
/// The reason, to follow the server's name in a sentence.
pub(super) async fn dial(
    name: &str,
    address: SocketAddr,
    tls: &ClientTls,
    alpn: &[&[u8]],
) -> Result<Connection, String> {
    let name = server_name(name).ok_or("has a name that no certificate can bear")?;
    let session = tls
        .session(alpn)
        .map_err(|error| format!("cannot be spoken to: {error}"))?;
    let socket = TcpStream::connect(address)
        .await
        .map_err(|error| format!("cannot be connected to: {error}"))?;
    let wire = Wire::new(socket);
    let (stream, dropped) = WireStream::new(&wire);
    let connected = TlsConnector::from(Arc::clone(&session.config))
        .connect(name, stream)
        .await;
    let closing = Closing { wire, dropped };
    match connected {
        Ok(stream) => Ok(Connection {
            stream,
            session,
            closing,
        }),
        Err(error) => {
            closing.close(Instant::now() + CLOSING).await;
            Err(format!("did not complete TLS: {}", cause(&error)))
        }
    }
}

/// What the certificate has to show: `host` without a zone.
fn server_name(host: &str) -> Option<ServerName<'static>> {
    let bare = host
        .split_once('%')
        .map_or(host, |(address, _zone)| address);
    match bare.parse::<IpAddr>() {
        Ok(address) => Some(ServerName::from(address)),
        Err(_) => ServerName::try_from(bare.trim_end_matches('.').to_owned()).ok(),
    }
}

/// rustls' reason instead of the I/O error around it.
fn cause(error: &io::Error) -> String {
    error
        .get_ref()
        .map_or_else(|| error.to_string(), ToString::to_string)
}
