//! Asks the kernel about one of our own sockets.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The socket's cookie (`SO_COOKIE`), by which the kernel side knows it: unique on this host until it reboots.
///
/// # Errors
/// The descriptor is no socket.
pub fn socket_cookie(socket: BorrowedFd<'_>) -> io::Result<u64> {
    Ok(rustix::net::sockopt::socket_cookie(socket)?)
}

/// Bytes written to a TCP socket that its peer has not acknowledged, those not yet sent included (`SIOCOUTQ`, which
/// has the value of `TIOCOUTQ`; tcp(7) calls it the unsent data, net/ipv4/tcp.c subtracts `snd_una` from `write_seq`).
///
/// # Errors
/// The descriptor is no TCP socket, or a listening one.
pub fn unsent_and_unacked(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is open while it is borrowed, and the request writes one int, to a live int of ours.
    let outcome = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if outcome == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(u32::try_from(bytes).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn counts_until_the_peer_acknowledges() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(unsent_and_unacked(stream.as_fd()).unwrap(), 0);
        stream.set_nonblocking(true).unwrap();
        // More than a receive buffer takes: something must stay unacknowledged while nobody reads.
        let block = vec![0; 1 << 20];
        while stream.write(&block).is_ok() {}
        assert!(unsent_and_unacked(stream.as_fd()).unwrap() > 0);
        let (mut peer, _) = listener.accept().unwrap();
        std::thread::spawn(move || io::copy(&mut peer, &mut io::sink()));
        let patience = Instant::now() + Duration::from_secs(10);
        while unsent_and_unacked(stream.as_fd()).unwrap() > 0 {
            assert!(Instant::now() < patience, "never acknowledged");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn every_socket_has_its_own_cookie() {
        let one = TcpListener::bind("127.0.0.1:0").unwrap();
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let cookie = socket_cookie(one.as_fd()).unwrap();
        assert_eq!(socket_cookie(one.as_fd()).unwrap(), cookie);
        assert_ne!(socket_cookie(other.as_fd()).unwrap(), cookie);
    }

    #[test]
    fn refuses_what_is_no_tcp_socket() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(unsent_and_unacked(file.as_fd()).is_err());
        assert!(socket_cookie(file.as_fd()).is_err());
    }
}
