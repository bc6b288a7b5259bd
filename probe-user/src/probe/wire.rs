//! The one socket of a probe, shared between the layers above it and the closing that comes after them.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use rustix::net::Shutdown;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

/// How much of a server's first words is kept, to tell plain text from TLS.
pub(crate) const FIRST_WORDS: usize = 64;

/// The socket. It outlives whatever speaks through it, because an HTTP/2 channel closes its stream when dropped: with
/// the peer's last bytes unread, and that makes the kernel send RST.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) socket: TcpStream,
    heard: Mutex<Vec<u8>>,
}

impl Wire {
    pub(crate) fn new(socket: TcpStream) -> Arc<Self> {
        Arc::new(Self {
            socket,
            heard: Mutex::new(Vec::new()),
        })
    }

    /// The first bytes the server sent.
    pub(crate) fn heard(&self) -> Vec<u8> {
        self.heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn hear(&self, bytes: &[u8]) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let room = FIRST_WORDS.saturating_sub(heard.len());
        heard.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Writes all of `bytes`.
    pub(crate) async fn send(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.socket.writable().await?;
            match self.socket.try_write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Says that nothing more will be sent, and reads until the server says the same. Closing after that sends nothing
    /// at all; closing with bytes unread, or before the last of them arrive, sends RST.
    pub(crate) async fn close(&self, until: Instant) {
        // Not connected any more: there is nobody to be polite to.
        if rustix::net::shutdown(&self.socket, Shutdown::Write).is_err() {
            return;
        }
        let drained = async {
            let mut scratch = vec![0; 16 * 1024];
            while self.socket.readable().await.is_ok() {
                match self.socket.try_read(&mut scratch) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => break,
                }
            }
        };
        if timeout_at(until, drained).await.is_err() {
            log::debug!("the server kept its side of the connection open");
        }
    }
}

/// The wire as a stream.
#[derive(Debug)]
pub(crate) struct WireStream {
    wire: Arc<Wire>,
    /// Dropped with the stream, which tells the other end of the channel.
    _held: oneshot::Sender<()>,
}

impl WireStream {
    /// A stream, and a future that ends when the stream has been dropped.
    pub(crate) fn new(wire: &Arc<Wire>) -> (Self, oneshot::Receiver<()>) {
        let (held, dropped) = oneshot::channel();
        let stream = Self {
            wire: Arc::clone(wire),
            _held: held,
        };
        (stream, dropped)
    }
}

impl AsyncRead for WireStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.wire.socket.poll_read_ready(cx))?;
            let room = buffer.initialize_unfilled();
            match self.wire.socket.try_read(room) {
                Ok(read) => {
                    self.wire.hear(&room[..read]);
                    buffer.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for WireStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.wire.socket.poll_write_ready(cx))?;
            match self.wire.socket.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return Poll::Ready(outcome),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(rustix::net::shutdown(&self.wire.socket, Shutdown::Write).map_err(Into::into))
    }
}
