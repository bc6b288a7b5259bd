//! A name server of our own, in the joining node's namespace.

use std::net::{Ipv4Addr, UdpSocket};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use joinprobe_lab::Namespace;

/// Where it listens.
pub(crate) const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 53);
/// How long it takes over names that begin with `slow`.
pub(crate) const SLOW: Duration = Duration::from_millis(1500);

/// Types of RFC 1035 section 3.2.2, and RFC 2782.
const A: u8 = 1;
const SRV: u8 = 33;

/// Starts it; its thread ends with the test process.
pub(crate) fn start(namespace: &Namespace) -> Result<()> {
    let socket = namespace.enter(|| UdpSocket::bind((ADDRESS, 53)))??;
    thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let (Some(answer), Ok(socket)) = (answer(&buffer[..length]), socket.try_clone()) else {
                continue;
            };
            let slow = buffer[13..].starts_with(b"slow");
            thread::spawn(move || {
                if slow {
                    thread::sleep(SLOW);
                }
                let _ = socket.send_to(&answer, from);
            });
        }
    });
    Ok(())
}

fn answer(query: &[u8]) -> Option<Vec<u8>> {
    let mut labels = Vec::new();
    let mut at = 12;
    while *query.get(at)? > 0 {
        let end = at + 1 + usize::from(query[at]);
        labels.push(String::from_utf8_lossy(query.get(at + 1..end)?).into_owned());
        at = end;
    }
    let (kind, question) = (*query.get(at + 2)?, query.get(12..at + 5)?);
    let records: &[&[u8]] = match (labels.join(".").as_str(), kind) {
        ("two.test", A) => &[&[10, 1, 0, 1], &[10, 1, 0, 2]],
        ("slow.test" | "m1.test", A) => &[&[10, 1, 0, 1]],
        ("m2.test", A) => &[&[10, 1, 0, 2]],
        // Priority, weight, port 2379, target.
        ("_etcd-client-ssl._tcp.srv.test", SRV) => &[
            b"\0\0\0\0\x09\x4b\x02m1\x04test\0",
            b"\0\0\0\0\x09\x4b\x02m2\x04test\0",
        ],
        ("mute.test", _) => return None,
        _ => &[],
    };
    let mut packet = vec![query[0], query[1], 0x85, 0x80, 0, 1, 0];
    packet.push(u8::try_from(records.len()).ok()?);
    packet.extend([0; 4]);
    packet.extend(question);
    for record in records {
        // The name by reference, type, class IN, 60 s, length.
        packet.extend([0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 60, 0]);
        packet.push(u8::try_from(record.len()).ok()?);
        packet.extend(*record);
    }
    Some(packet)
}
