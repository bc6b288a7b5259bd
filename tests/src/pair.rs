//! Two hosts on a link: the smallest lab.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::Result;

use crate::capture::Recording;
use crate::link::{DEVICE, Impairment};
use crate::{Capture, Link, Namespace, NodeId};

/// The port on which the server sends back what it gets.
pub const ECHO_PORT: u16 = 2379;
/// The port on which the server only reads.
pub const SINK_PORT: u16 = 2380;

/// A client and a server.
#[derive(Debug)]
pub struct Pair {
    // In this order, so that the link goes before the namespaces.
    /// What lies between them; at first it delays nothing.
    pub link: Link,
    /// The client's network.
    pub client: Namespace,
    /// The server's network.
    pub server: Namespace,
    /// The server's IPv4 address.
    pub v4: IpAddr,
    /// The server's IPv6 address.
    pub v6: IpAddr,
}

impl Pair {
    /// The client's place on the link.
    pub const CLIENT: NodeId = NodeId(0);
    /// The server's place on the link.
    pub const SERVER: NodeId = NodeId(1);

    /// Makes both and starts the server.
    ///
    /// # Errors
    /// When namespaces or devices cannot be made (root is needed).
    pub fn start() -> Result<Self> {
        let (client, server) = (Namespace::create()?, Namespace::create()?);
        let v4: IpAddr = "10.9.0.1".parse()?;
        let v6: IpAddr = "fd00:9::1".parse()?;
        let link = Link::between(&client, &server, 1)?;
        for (port, serve) in [
            (ECHO_PORT, echo as fn(TcpStream)),
            (SINK_PORT, sink as fn(TcpStream)),
        ] {
            let listener = server.enter(|| TcpListener::bind(("::", port)))??;
            thread::spawn(move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    thread::spawn(move || serve(stream));
                }
            });
        }
        Ok(Self {
            link,
            client,
            server,
            v4,
            v6,
        })
    }

    /// Sets what lies between them, both ways.
    pub fn shape(&self, impairment: Impairment) {
        self.link.set_both(Self::CLIENT, Self::SERVER, impairment);
    }

    /// Connects from the client.
    ///
    /// # Errors
    /// When that takes longer than eight seconds, or is refused.
    pub fn connect(&self, to: SocketAddr) -> Result<TcpStream> {
        let stream = self
            .client
            .enter(|| TcpStream::connect_timeout(&to, Duration::from_secs(8)))??;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Captures at the client while `work` runs.
    ///
    /// # Errors
    /// Those of `work`, and when the capture fails.
    pub fn captured<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(Recording, T)> {
        let capture = Capture::start(&self.client, DEVICE)?;
        let done = work()?;
        Ok((capture.stop()?, done))
    }
}

fn echo(mut stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..length]).is_err() {
            return;
        }
    }
}

fn sink(mut stream: TcpStream) {
    let mut buffer = vec![0; 1 << 18];
    while let Ok(1..) = stream.read(&mut buffer) {}
}
