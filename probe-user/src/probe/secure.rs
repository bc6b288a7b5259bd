//! The tls stage.

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ProtocolVersion};
use tokio::io::AsyncBufRead;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::context::ProbeContext;
use super::pacing::{self, PathWatch};
use super::refusal;
use super::report::{ClientCertificate, ProbeFailure, ProbeReport, Stage, TlsState};
use super::wire::{Wire, WireStream};
use super::{alert, connect::Marked};
use crate::target::{Role, Target};
use crate::tls::{CertificateFacts, Session, Validity, utc};

/// Time a server gets, besides two round trips, to accept a client certificate: checking one takes about a millisecond.
const CONFIRMATION_SLACK: Duration = Duration::from_millis(100);

/// A TLS stream, and a future that ends when the stream has been dropped.
pub(super) struct Secured {
    pub(super) stream: TlsStream<WireStream>,
    pub(super) dropped: oneshot::Receiver<()>,
}

/// How a TLS handshake is carried out.
pub(super) struct Handshake<'a> {
    pub(super) target: &'a Target,
    pub(super) context: &'a ProbeContext<'a>,
    pub(super) wire: &'a Arc<Wire>,
    pub(super) marked: &'a Marked<'a>,
    /// The RTT as `connect()` knows it.
    pub(super) round_trip: Duration,
    pub(super) until: Instant,
}

impl Handshake<'_> {
    /// Takes TLS as far as the server allows. `None` when it ends for want of a client certificate, or because the
    /// server does not want the one that was shown: both are states of the report, not failures.
    pub(super) async fn run(
        &self,
        report: &mut ProbeReport,
    ) -> Result<Option<Secured>, ProbeFailure> {
        let name = server_name(self.target, self.context.tls.server_name())?;
        let session = self
            .context
            .tls
            .session(alpn(self.target.spec.role))
            .map_err(|error| refusal::unexpected(self.target, &error.to_string()))?;
        let (stream, dropped) = WireStream::new(self.wire);
        let mut hello = Vec::new();
        // The ClientHello is taken out of the session before the session sees the stream; the rest of the handshake
        // then goes on as if it had been sent in one piece.
        let connect = TlsConnector::from(Arc::clone(&session.config))
            .connect_with(name, stream, |session| {
                while session.wants_write() && session.write_tls(&mut hello).is_ok() {}
            })
            .into_fallible();
        let mut path = PathWatch::new(self.marked);
        let sent = self.send(&hello, &mut path, report).await;
        let outcome = match sent {
            Ok(last) => Ok((last, timeout_at(self.until, connect).await)),
            Err(failure) => Err(failure),
        };
        // Not before the server spoke: it may be its first segment that completes the last sample.
        report.path_sequence = path.into_sequence();
        let (last, outcome) = outcome?;
        report.server_certificate = session
            .verifier
            .seen()
            .and_then(|der| CertificateFacts::read(&der));
        let stream = match outcome {
            Err(_) => return Err(refusal::silence(self.target, self.wire, last.elapsed())),
            Ok(Err((error, _stream))) => {
                report.stages.tls = Some(last.elapsed());
                if self.about_client(&session, &error, report) {
                    return Ok(None);
                }
                return Err(refusal::explain(
                    self.target,
                    self.context.tls,
                    self.wire,
                    report,
                    &error,
                ));
            }
            Ok(Ok(stream)) => stream,
        };
        report.stages.tls = Some(last.elapsed());
        report.tls = self.trust();
        report.tls_version = version(&stream);
        if self.target.spec.role == Role::EtcdClient && !chose_http2(&stream) {
            return Err(refusal::no_http2(self.target));
        }
        let mut secured = Secured { stream, dropped };
        let go_on = self.confirm(&session, &mut secured.stream, report).await?;
        Ok(go_on.then_some(secured))
    }

    async fn send(
        &self,
        hello: &[u8],
        path: &mut PathWatch<'_>,
        report: &mut ProbeReport,
    ) -> Result<Instant, ProbeFailure> {
        let sent = pacing::send(
            hello,
            self.wire,
            path,
            &self.context.pacing,
            self.until,
            self.round_trip,
        )
        .await;
        report.chunks = sent.chunks;
        match sent.interrupted {
            // Whatever it said, the session will read it and say what is wrong with it.
            None | Some(pacing::Interruption::Spoke) => Ok(sent.last),
            Some(interruption) => Err(refusal::interrupted(
                self.target,
                sent.chunks,
                self.context.pacing.max_chunks,
                interruption,
            )),
        }
    }

    fn trust(&self) -> TlsState {
        if self.context.tls.ca().is_some() {
            TlsState::Verified
        } else {
            TlsState::Unverified
        }
    }

    /// Notes an alert about the client's certificate; `false` when the error is about something else.
    fn about_client(&self, session: &Session, error: &io::Error, report: &mut ProbeReport) -> bool {
        let Some(alert) = alert::received(error) else {
            return false;
        };
        // Asked for only after the server's own certificate was verified, or accepted unverified.
        if !session.asked() || !alert::about_client(alert) {
            return false;
        }
        report.tls = self.trust();
        report.client_certificate = match self.context.tls.shown() {
            Some(identity) => {
                ClientCertificate::Rejected(rejection(alert, identity.facts(), SystemTime::now()))
            }
            None => self.absent(),
        };
        true
    }

    /// What to call a client certificate that was not shown.
    fn absent(&self) -> ClientCertificate {
        if self.context.tls.identity().is_some() {
            ClientCertificate::Withheld
        } else {
            ClientCertificate::NotGiven
        }
    }

    /// With TLS 1.3 the handshake ends before the server has looked at the client's certificate. Its first words tell:
    /// an alert, or else a session ticket or HTTP/2 settings. Waiting for them also keeps that work out of the request
    /// stage. `false` when the server will hear nothing further.
    async fn confirm(
        &self,
        session: &Session,
        stream: &mut TlsStream<WireStream>,
        report: &mut ProbeReport,
    ) -> Result<bool, ProbeFailure> {
        let shown = self.context.tls.shown().is_some();
        report.client_certificate = if shown {
            ClientCertificate::Accepted
        } else {
            self.absent()
        };
        // An API server asks everyone and insists on nothing; the request that follows tells as much.
        let optional = !shown && self.target.spec.role == Role::ApiServer;
        if report.tls_version != Some("1.3") || !session.asked() || optional {
            return Ok(true);
        }
        let patience = 2 * self.round_trip + CONFIRMATION_SLACK;
        let until = self.until.min(Instant::now() + patience);
        let Ok(first) = timeout_at(until, first_words(stream)).await else {
            return Ok(true);
        };
        let error = match first {
            Ok(open) => {
                if !open && shown {
                    report.client_certificate = ClientCertificate::Rejected(CLOSED.to_owned());
                }
                return Ok(open);
            }
            Err(error) => error,
        };
        if self.about_client(session, &error, report) {
            return Ok(false);
        }
        if alert::tls_error(&error).is_none() {
            if shown {
                report.client_certificate = ClientCertificate::Rejected(CLOSED.to_owned());
            }
            return Ok(false);
        }
        Err(refusal::explain(
            self.target,
            self.context.tls,
            self.wire,
            report,
            &error,
        ))
    }
}

/// The alert's name, and what is plainly wrong with the certificate: the alert is often no more than `bad certificate`.
fn rejection(alert: AlertDescription, facts: &CertificateFacts, now: SystemTime) -> String {
    let alert = alert::words(alert);
    match facts.validity(now) {
        Validity::Expired => format!("{alert} (it expired on {})", utc(facts.not_after)),
        Validity::NotYetValid => {
            format!("{alert} (it is not valid before {})", utc(facts.not_before))
        }
        _ if !facts.allows_client => {
            format!("{alert} (its extended key usage does not allow clients)")
        }
        _ => format!("{alert} (issued by `{}`)", facts.issuer),
    }
}

/// What is said instead of an alert's name when a server closes without one.
const CLOSED: &str = "closed without an alert";

/// Waits until the server has said anything after the handshake; `false` when it closed instead. Data for the layers
/// above stays in the stream.
async fn first_words(stream: &mut TlsStream<WireStream>) -> io::Result<bool> {
    poll_fn(|cx| {
        let filled = match Pin::new(&mut *stream).poll_fill_buf(cx) {
            Poll::Ready(filled) => Poll::Ready(filled.map(|data| !data.is_empty())),
            Poll::Pending => Poll::Pending,
        };
        if filled.is_pending() && stream.get_ref().1.tls13_tickets_received() > 0 {
            return Poll::Ready(Ok(true));
        }
        filled
    })
    .await
}

fn version(stream: &TlsStream<WireStream>) -> Option<&'static str> {
    match stream.get_ref().1.protocol_version()? {
        ProtocolVersion::TLSv1_2 => Some("1.2"),
        ProtocolVersion::TLSv1_3 => Some("1.3"),
        _ => None,
    }
}

fn chose_http2(stream: &TlsStream<WireStream>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(b"h2")
}

/// The name the certificate must bear: what the user wrote, not what it resolved to.
fn server_name(target: &Target, other: Option<&str>) -> Result<ServerName<'static>, ProbeFailure> {
    let host = other.unwrap_or(&target.spec.host);
    let bare = host
        .split_once('%')
        .map_or(host, |(address, _zone)| address);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(ServerName::from(address));
    }
    ServerName::try_from(host.trim_end_matches('.').to_owned()).map_err(|_| ProbeFailure {
        stage: Stage::Tls,
        result: "name_mismatch",
        text: format!(
            "`{host}` cannot be a name in a certificate; dial {target} by a host name or an address"
        ),
    })
}

fn alpn(role: Role) -> &'static [&'static [u8]] {
    match role {
        Role::EtcdClient => &[b"h2"],
        Role::EtcdPeer => &[],
        Role::ApiServer => &[b"http/1.1"],
    }
}
