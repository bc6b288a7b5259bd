//! One plain HTTP request.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// The body of a successful `GET path`.
///
/// # Errors
/// When nobody answers within 5 s, or not with 200.
pub fn get(address: SocketAddr, path: &str) -> Result<String> {
    let patience = Duration::from_secs(5);
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    // HTTP/1.0: no chunks, and the server closes.
    write!(
        stream,
        "GET {path} HTTP/1.0\r\nHost: lab\r\nAccept: */*\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no HTTP answer")?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    ensure!(status == "200", "{path}: {head}\n{body}");
    Ok(body.to_owned())
}

/// A loopback port nobody listens on just now.
pub(super) fn free_port() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// `text` for use in a query string.
pub(super) fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'.' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
