//! Numbers and sockets as users write them. clap's own messages give no remedy.

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A TCP port.
pub(super) fn port(written: &str) -> Result<u16, String> {
    within(written, 1..=u16::MAX, 2379)
}

/// How many connections one target may get.
pub(super) fn connections(written: &str) -> Result<u32, String> {
    within(written, 1..=16, 3)
}

/// How many targets are told apart.
pub(super) fn targets(written: &str) -> Result<u32, String> {
    within(written, 1..=4096, 64)
}

/// How many etcd members may be away.
pub(super) fn members(written: &str) -> Result<u32, String> {
    within(written, 0..=u32::MAX, 1)
}

/// Where to listen.
pub(super) fn listen(written: &str) -> Result<SocketAddr, String> {
    written.parse().map_err(|_| {
        "it is not an address and a port; write for example 127.0.0.1:9780 or [::1]:9780".to_owned()
    })
}

fn within<T: FromStr + PartialOrd + Display>(
    written: &str,
    range: RangeInclusive<T>,
    example: u16,
) -> Result<T, String> {
    written
        .parse()
        .ok()
        .filter(|number| range.contains(number))
        .ok_or_else(|| {
            format!(
                "it is not a whole number from {} to {}; write for example {example}",
                range.start(),
                range.end()
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_comes_with_an_example() {
        assert_eq!(port("2379"), Ok(2379));
        assert_eq!(members("0"), Ok(0));
        for refused in [port("0"), port("65536"), port("x"), port(""), port("-1")] {
            let reason = refused.unwrap_err();
            assert!(
                reason.contains("from 1 to 65535; write for example"),
                "{reason}"
            );
        }
        for refused in [connections("17"), targets("4097"), members("-1")] {
            assert!(refused.unwrap_err().contains("for example"));
        }
        for refused in ["9780", ":9780", "localhost:9780", "::1:9780x"] {
            assert!(listen(refused).unwrap_err().contains("127.0.0.1:9780"));
        }
        assert!(listen("[::]:9780").is_ok());
    }
}
