//! What a capture saw.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use pcap_parser::Linktype;
use pcap_parser::pcap::{parse_pcap_frame, parse_pcap_header};

use super::flow::Flow;
use crate::segment::{Segment, parse_ip};

/// One TCP segment and when the kernel saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Since the Unix epoch, to the nanosecond.
    pub at: Duration,
    /// Its header.
    pub segment: Segment,
}

/// All TCP segments of a capture, in the order the kernel saw them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recording {
    /// The segments.
    pub packets: Vec<Packet>,
}

impl Recording {
    /// Reads a pcap file with nanosecond timestamps as tcpdump writes it on this machine. What is not TCP is left out.
    ///
    /// # Errors
    /// When it is no such file, or its link type is unknown here.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self> {
        let (mut rest, header) =
            parse_pcap_header(bytes).map_err(|error| anyhow!("no pcap header: {error:?}"))?;
        if !header.is_nanosecond_precision() || header.is_bigendian() {
            bail!("the capture is not in this machine's nanosecond format");
        }
        let link_header = match header.network {
            Linktype::RAW => 0,
            Linktype::ETHERNET => 14,
            Linktype::LINUX_SLL => 16,
            Linktype::LINUX_SLL2 => 20,
            other => bail!("captures of link type {other} are not read here"),
        };
        let mut packets = Vec::new();
        while !rest.is_empty() {
            let (next, frame) =
                parse_pcap_frame(rest).map_err(|error| anyhow!("cut off frame: {error:?}"))?;
            rest = next;
            let segment = frame
                .data
                .get(link_header..)
                .and_then(parse_ip)
                .and_then(|packet| packet.tcp);
            // In this format the field counts nanoseconds.
            let at = Duration::new(frame.ts_sec.into(), frame.ts_usec);
            packets.extend(segment.map(|segment| Packet { at, segment }));
        }
        Ok(Self { packets })
    }

    /// The connections opened during the capture, in order of their first SYN.
    #[must_use]
    pub fn flows(&self) -> Vec<Flow<'_>> {
        let mut flows: Vec<Flow<'_>> = Vec::new();
        for packet in &self.packets {
            let segment = &packet.segment;
            let belongs = |flow: &&mut Flow<'_>| flow.side_of(segment).is_some();
            // From the end: a port that is used again belongs to the newer connection.
            match flows.iter_mut().rev().find(belongs) {
                Some(flow) if !flow.is_reopened_by(segment) => flow.packets.push(packet),
                _ if segment.is_syn() => flows.push(Flow {
                    client: segment.source,
                    server: segment.destination,
                    packets: vec![packet],
                }),
                _ => {}
            }
        }
        flows
    }

    /// The connections opened to this server.
    #[must_use]
    pub fn flows_to(&self, server: SocketAddr) -> Vec<Flow<'_>> {
        self.flows()
            .into_iter()
            .filter(|flow| flow.server == server)
            .collect()
    }
}
