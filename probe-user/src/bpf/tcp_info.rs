//! What the kernel knows about a TCP connection: segment sizes and losses of our own, RTTs of any.

use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, BorrowedFd};

/// `struct tcp_info` (include/uapi/linux/tcp.h) as far as 5.4 has it. The kernel fills as much as it knows.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawTcpInfo {
    state: u8,
    ca_state: u8,
    retransmits: u8,
    probes: u8,
    backoff: u8,
    options: u8,
    window_scales: u8,
    flags: u8,
    rto: u32,
    ato: u32,
    snd_mss: u32,
    rcv_mss: u32,
    unacked: u32,
    sacked: u32,
    lost: u32,
    retrans: u32,
    fackets: u32,
    last_data_sent: u32,
    last_ack_sent: u32,
    last_data_recv: u32,
    last_ack_recv: u32,
    pmtu: u32,
    rcv_ssthresh: u32,
    rtt: u32,
    rttvar: u32,
    snd_ssthresh: u32,
    snd_cwnd: u32,
    advmss: u32,
    reordering: u32,
    rcv_rtt: u32,
    rcv_space: u32,
    total_retrans: u32,
    pacing_rate: u64,
    max_pacing_rate: u64,
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt: u32,
    data_segs_in: u32,
    data_segs_out: u32,
    delivery_rate: u64,
    busy_time: u64,
    rwnd_limited: u64,
    sndbuf_limited: u64,
    delivered: u32,
    delivered_ce: u32,
    bytes_sent: u64,
    bytes_retrans: u64,
    dsack_dups: u32,
    reord_seen: u32,
    rcv_ooopack: u32,
    snd_wnd: u32,
}

// Where the kernel's header has them.
const _: () = {
    assert!(size_of::<RawTcpInfo>() == 232);
    assert!(offset_of!(RawTcpInfo, snd_mss) == 16);
    assert!(offset_of!(RawTcpInfo, pmtu) == 60);
    assert!(offset_of!(RawTcpInfo, advmss) == 84);
    assert!(offset_of!(RawTcpInfo, rtt) == 68);
    assert!(offset_of!(RawTcpInfo, total_retrans) == 100);
    assert!(offset_of!(RawTcpInfo, bytes_acked) == 120);
    assert!(offset_of!(RawTcpInfo, bytes_received) == 128);
    assert!(offset_of!(RawTcpInfo, min_rtt) == 148);
    assert!(offset_of!(RawTcpInfo, data_segs_out) == 156);
    assert!(offset_of!(RawTcpInfo, rcv_ooopack) == 224);
};

/// Segment sizes and what was lost, of one connection at one moment. Sizes are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpSegments {
    /// Path MTU, IP header included, as far as this host knows: its own interface's until ICMP says otherwise.
    pub path_mtu: u32,
    /// Most payload of a segment sent: the least of the path's and of what the peer can take, less TCP's options.
    pub mss: u32,
    /// Most payload of a segment by this host's own interface: its MTU less the headers and TCP's timestamps. What it
    /// told the peer is 12 more where timestamps are in use.
    pub own_mss: u32,
    /// Payload that arrived in order.
    pub bytes_received: u64,
    /// Segments that arrived while one before them was missing.
    pub out_of_order: u32,
    /// Segments sent that are not acknowledged.
    pub unacknowledged: u32,
    /// How often the oldest of those was sent again.
    pub retransmits: u8,
}

/// Reads `TCP_INFO`.
///
/// # Errors
/// The descriptor is no TCP socket.
pub fn tcp_segments(socket: BorrowedFd<'_>) -> io::Result<TcpSegments> {
    let mut raw = RawTcpInfo::default();
    let mut length = libc::socklen_t::try_from(size_of::<RawTcpInfo>()).unwrap_or(0);
    // SAFETY: value and length point to live memory of ours of the size that `length` says, and every bit pattern is
    // a value of the structure.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut raw).cast(),
            &raw mut length,
        )
    };
    if status == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(TcpSegments {
        path_mtu: raw.pmtu,
        mss: raw.snd_mss,
        own_mss: raw.advmss,
        bytes_received: raw.bytes_received,
        out_of_order: raw.rcv_ooopack,
        unacknowledged: raw.unacked,
        retransmits: raw.retransmits,
    })
}

/// RTTs and what was sent, of one connection at one moment, as `sock_diag` tells of any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ConnectionInfo {
    /// The smoothed RTT, microseconds; 0 before the first sample.
    pub(super) rtt_us: u32,
    /// The smallest RTT of the last five minutes (`net.ipv4.tcp_min_rtt_wlen`), microseconds; `u32::MAX` without.
    pub(super) min_rtt_us: u32,
    /// Segments sent again, SYNs included.
    pub(super) total_retrans: u32,
    /// Bytes that the peer has acknowledged. The RTTs change only with them.
    pub(super) bytes_acked: u64,
    /// Segments with data that were sent, retransmissions included.
    pub(super) data_segs_out: u32,
}

impl ConnectionInfo {
    /// Reads a `struct tcp_info` of whatever length the kernel has; `None` where it ends before what is needed.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let long = |at: usize| Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        Some(Self {
            rtt_us: word(offset_of!(RawTcpInfo, rtt))?,
            min_rtt_us: word(offset_of!(RawTcpInfo, min_rtt))?,
            total_retrans: word(offset_of!(RawTcpInfo, total_retrans))?,
            bytes_acked: long(offset_of!(RawTcpInfo, bytes_acked))?,
            data_segs_out: word(offset_of!(RawTcpInfo, data_segs_out))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd as _;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn tells_sizes_and_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.write_all(b"twelve bytes").unwrap();
        let patience = Instant::now() + Duration::from_secs(10);
        let segments = loop {
            let segments = tcp_segments(client.as_fd()).unwrap();
            if segments.bytes_received > 0 || Instant::now() > patience {
                break segments;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        assert_eq!(segments.bytes_received, 12);
        // IPv4 and TCP take 40 bytes, TCP's timestamps 12 where they are in use.
        let headers = segments.path_mtu - segments.own_mss;
        assert!(headers == 40 || headers == 52, "{segments:?}");
        // On loopback half the peer's window is less.
        assert!(segments.mss > 500 && segments.mss <= segments.own_mss);
        assert_eq!((segments.out_of_order, segments.unacknowledged), (0, 0));
    }

    #[test]
    fn a_structure_of_any_length_is_read_or_left() {
        let mut bytes = [0_u8; 300];
        bytes[68..72].copy_from_slice(&10_250_u32.to_ne_bytes());
        bytes[120..128].copy_from_slice(&(1_u64 << 40).to_ne_bytes());
        bytes[156..160].copy_from_slice(&7_u32.to_ne_bytes());
        for length in [160, 232, 300] {
            let info = ConnectionInfo::parse(&bytes[..length]).unwrap();
            assert_eq!(
                (info.rtt_us, info.bytes_acked, info.data_segs_out),
                (10_250, 1 << 40, 7)
            );
        }
        for length in 0..160 {
            assert_eq!(ConnectionInfo::parse(&bytes[..length]), None);
        }
    }

    #[test]
    fn refuses_what_is_no_socket() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(tcp_segments(file.as_fd()).is_err());
    }
}
