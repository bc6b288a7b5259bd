//! One read-only request to the API server, over a connection of its own.

use std::net::SocketAddr;

use http::header::{ACCEPT, AUTHORIZATION, CONNECTION, HOST, HeaderValue, USER_AGENT};
use http::{Method, Request, Version};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::client::TlsStream;
use zeroize::Zeroizing;

use super::connection::dial;
use crate::discover::secret::Secret;
use crate::probe::{WireStream, apiserver};
use crate::target::TargetSpec;
use crate::tls::{ClientTls, Session};

/// The longest answer that is read. Three etcd pods are about 30 KB; the limit is also that of the files on disk.
const LONGEST_BODY: usize = 1024 * 1024;

/// An API server to ask.
#[derive(Clone, Debug)]
pub struct ApiServer {
    /// As it was written.
    pub spec: TargetSpec,
    /// The address dialled.
    pub address: SocketAddr,
    /// The name its certificate has to show, where it is not the host's.
    pub server_name: Option<String>,
}

/// Why the cluster could not be asked: one sentence with the server, the reason and, where there is one, the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OnlineError(pub String);

/// An answer.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Bytes,
    /// What the connection learned about the server.
    pub(super) session: Session,
}

impl ApiServer {
    /// Sends one GET. `bearer` is sent only where `tls` verifies the server.
    pub(super) async fn get(
        &self,
        path: &str,
        tls: &ClientTls,
        bearer: Option<&Secret>,
        deadline: Instant,
    ) -> Result<Answer, OnlineError> {
        let refuse = |reason: String| OnlineError(format!("{} {reason}", self.spec));
        let request = self
            .request(path, bearer.filter(|_| tls.ca().is_some()))
            .map_err(|error| refuse(format!("cannot be asked for {path}: {error}")))?;
        let name = self.server_name.as_deref().unwrap_or(&self.spec.host);
        let exchange = async {
            let connection = dial(name, self.address, tls, &[b"http/1.1"]).await?;
            let answer = exchange(connection.stream, request)
                .await
                .map_err(|reason| format!("did not answer GET {path}: {reason}"));
            connection.closing.close(deadline).await;
            let (status, body) = answer?;
            Ok::<_, String>(Answer {
                status,
                body,
                session: connection.session,
            })
        };
        match timeout_at(deadline, exchange).await {
            Ok(answer) => answer.map_err(refuse),
            Err(_) => Err(refuse(format!("did not answer GET {path} in time"))),
        }
    }

    fn request(
        &self,
        path: &str,
        bearer: Option<&Secret>,
    ) -> Result<Request<Empty<Bytes>>, http::Error> {
        let mut request = Request::builder()
            .method(Method::GET)
            .uri(path)
            .version(Version::HTTP_11)
            .header(HOST, self.host())
            .header(USER_AGENT, concat!("joinprobe/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, "application/json")
            .header(CONNECTION, "close");
        if let Some(token) = bearer {
            let text = Zeroizing::new(format!("Bearer {}", token.expose()));
            let mut value = HeaderValue::from_str(&text)?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        request.body(Empty::new())
    }

    /// The Host header: as it was written, without a zone.
    fn host(&self) -> String {
        match self.spec.host.split_once('%') {
            Some((address, _zone)) => format!("[{address}]:{}", self.spec.port),
            None => self.spec.to_string(),
        }
    }
}

async fn exchange(
    stream: TlsStream<WireStream>,
    request: Request<Empty<Bytes>>,
) -> Result<(u16, Bytes), String> {
    let explain = |error: hyper::Error| apiserver::explain(&error);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(explain)?;
    let answer = async move {
        let response = sender.send_request(request).await.map_err(explain)?;
        let status = response.status().as_u16();
        match Limited::new(response.into_body(), LONGEST_BODY)
            .collect()
            .await
        {
            Ok(body) => Ok((status, body.to_bytes())),
            Err(_) => Err("the answer is larger than 1 MiB, or broke off".to_owned()),
        }
    };
    // The connection only moves while it is polled; it ends when the sender is gone.
    let (answer, _) = tokio::join!(answer, connection);
    answer
}
