//! TCP segments as they are on the wire, read by the link and from captures.

use std::net::{IpAddr, SocketAddr};

use etherparse::{LaxNetSlice, LaxSlicedPacket, TcpOptionElement, TransportSlice};

/// The header of one TCP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Who sent it.
    pub source: SocketAddr,
    /// Who it is for.
    pub destination: SocketAddr,
    /// Sequence number of its first byte.
    pub sequence: u32,
    /// The next byte its sender expects; meaningful when `flags.ack`.
    pub acknowledged: u32,
    /// Control bits.
    pub flags: Flags,
    /// Bytes of payload, also of those that a capture cut off.
    pub payload: u32,
    /// The window field, as it is in the header.
    pub window: u16,
    /// The timestamp option: the sender's clock and what it echoes.
    pub timestamps: Option<(u32, u32)>,
    /// Selectively acknowledged blocks: the first byte and the one after the last.
    pub selective: [Option<(u32, u32)>; 4],
}

/// TCP control bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "these are the bits of the header"
)]
pub struct Flags {
    /// Opens a connection.
    pub syn: bool,
    /// The acknowledgement number counts.
    pub ack: bool,
    /// The sender has no more data.
    pub fin: bool,
    /// Aborts the connection.
    pub rst: bool,
}

impl Segment {
    /// A connection request.
    #[must_use]
    pub fn is_syn(&self) -> bool {
        self.flags.syn && !self.flags.ack
    }

    /// The answer to a connection request.
    #[must_use]
    pub fn is_syn_ack(&self) -> bool {
        self.flags.syn && self.flags.ack
    }

    /// How far it moves the sequence: payload, and one each for SYN and FIN.
    #[must_use]
    pub fn length(&self) -> u32 {
        self.payload + u32::from(self.flags.syn) + u32::from(self.flags.fin)
    }

    /// The sequence number after it: what acknowledges it whole.
    #[must_use]
    pub fn end(&self) -> u32 {
        self.sequence.wrapping_add(self.length())
    }
}

/// What an IP packet is to the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IpPacket {
    pub(crate) destination: IpAddr,
    pub(crate) tcp: Option<Segment>,
}

/// Reads an IP packet, which may be cut short after its headers; `None` when it is none.
pub(crate) fn parse_ip(bytes: &[u8]) -> Option<IpPacket> {
    let packet = LaxSlicedPacket::from_ip(bytes).ok()?;
    let source: IpAddr;
    let destination: IpAddr;
    let carried: usize;
    match packet.net? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            source = header.source_addr().into();
            destination = header.destination_addr().into();
            carried = usize::from(header.total_len()).saturating_sub(header.slice().len());
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            source = header.source_addr().into();
            destination = header.destination_addr().into();
            carried =
                usize::from(header.payload_length()).saturating_sub(ip.extensions().slice().len());
        }
        LaxNetSlice::Arp(_) => return None,
    }
    let tcp = match packet.transport {
        Some(TransportSlice::Tcp(tcp)) => Some(Segment {
            source: SocketAddr::new(source, tcp.source_port()),
            destination: SocketAddr::new(destination, tcp.destination_port()),
            sequence: tcp.sequence_number(),
            acknowledged: tcp.acknowledgment_number(),
            flags: Flags {
                syn: tcp.syn(),
                ack: tcp.ack(),
                fin: tcp.fin(),
                rst: tcp.rst(),
            },
            payload: u32::try_from(carried.saturating_sub(tcp.header_slice().len()))
                .unwrap_or(u32::MAX),
            window: tcp.window_size(),
            timestamps: tcp.options_iterator().find_map(|option| match option {
                Ok(TcpOptionElement::Timestamp(value, echo)) => Some((value, echo)),
                _ => None,
            }),
            selective: tcp
                .options_iterator()
                .find_map(|option| match option {
                    Ok(TcpOptionElement::SelectiveAcknowledgement(first, [a, b, c])) => {
                        Some([Some(first), a, b, c])
                    }
                    _ => None,
                })
                .unwrap_or_default(),
        }),
        _ => None,
    };
    Some(IpPacket { destination, tcp })
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    #[test]
    fn payload_counts_what_a_capture_cut_off() {
        let mut bytes = Vec::new();
        PacketBuilder::ipv4([10, 1, 0, 1], [10, 1, 0, 2], 64)
            .tcp(40_000, 2379, 7, 1024)
            .ack(9)
            .write(&mut bytes, &[0; 1000])
            .unwrap();
        for cut in [bytes.len(), 128, 40] {
            let tcp = parse_ip(&bytes[..cut]).unwrap().tcp.unwrap();
            assert_eq!((tcp.payload, tcp.sequence, tcp.acknowledged), (1000, 7, 9));
            assert_eq!(tcp.end(), 1007);
            assert_eq!(tcp.destination, "10.1.0.2:2379".parse().unwrap());
        }
    }

    #[test]
    fn ipv6_syn_with_options() {
        let mut bytes = Vec::new();
        PacketBuilder::ipv6([1; 16], [2; 16], 64)
            .tcp(40_000, 6443, u32::MAX, 1024)
            .syn()
            .options(&[TcpOptionElement::Timestamp(5, 6)])
            .unwrap()
            .write(&mut bytes, &[])
            .unwrap();
        let tcp = parse_ip(&bytes).unwrap().tcp.unwrap();
        assert!(tcp.is_syn() && !tcp.is_syn_ack());
        assert_eq!(tcp.timestamps, Some((5, 6)));
        assert_eq!((tcp.payload, tcp.end()), (0, 0));
    }

    #[test]
    fn junk_is_not_a_packet() {
        assert_eq!(parse_ip(&[]), None);
        assert_eq!(parse_ip(&[0xff; 60]), None);
        assert_eq!(parse_ip(&[0x45; 10]), None);
    }
}
