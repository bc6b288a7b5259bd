//! Says when measuring begins and ends: on standard error, and to systemd where it started us (`sd_notify(3)`).

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Everything that happens from now on is measured.
pub(super) fn ready() {
    // With standard error closed there is nobody left to tell.
    let _ = writeln!(io::stderr(), "joinprobe: ready");
    tell("READY=1\nSTATUS=measuring");
}

/// The end has begun.
pub(super) fn stopping() {
    tell("STOPPING=1");
}

fn tell(state: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty()) else {
        return;
    };
    if let Err(error) = send(&socket, state) {
        log::warn!(
            "systemd could not be told {state:?} at {}: {error}",
            socket.display()
        );
    }
}

fn send(socket: &OsString, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    let sender = UnixDatagram::unbound()?;
    sender.send_to_addr(state.as_bytes(), &address).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_socket_are_reached() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let receiver = UnixDatagram::bind(&path).unwrap();
        let mut buffer = [0; 64];
        send(&path.into_os_string(), "READY=1").unwrap();
        let length = receiver.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"READY=1");

        let name = format!("joinprobe-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let receiver = UnixDatagram::bind_addr(&address).unwrap();
        send(&format!("@{name}").into(), "STOPPING=1").unwrap();
        let length = receiver.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"STOPPING=1");
    }
}
