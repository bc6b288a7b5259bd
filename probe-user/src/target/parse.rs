//! `HOST:PORT` as users write it.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{Role, RoleName, TargetSpec};

/// Why a `HOST:PORT` was refused: one sentence with the input, the reason and the remedy.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{input}` is not a usable address: {reason}; write it as {example}")]
pub struct ParseError {
    input: String,
    reason: &'static str,
    example: String,
}

/// Parses `HOST:PORT`, where HOST is a host name, an IPv4 address or an IPv6 address in brackets.
///
/// # Errors
/// The port is missing or not a port, or the host is empty or cannot be a host.
pub fn parse(role: Role, input: &str) -> Result<TargetSpec, ParseError> {
    let refuse = |reason, example: Option<String>| ParseError {
        input: input.to_owned(),
        reason,
        example: example.unwrap_or_else(|| {
            format!(
                "HOST:PORT, for example 10.0.0.1:{0} or [fd00::1]:{0}",
                role.default_port()
            )
        }),
    };
    if input.is_empty() {
        return Err(refuse("it is empty", None));
    }
    if input.contains("://") {
        return Err(refuse("it is a URL", None));
    }
    if let Some((first, _)) = input.split_once(',') {
        let example = format!("{first}, and each of the others with a flag of its own");
        return Err(refuse("it is a list", Some(example)));
    }
    if input.parse::<Ipv6Addr>().is_ok() {
        return Err(refuse(
            "an IPv6 address needs brackets and a port",
            Some(bracketed(role, input)),
        ));
    }
    let (host, port) = match input.strip_prefix('[') {
        Some(rest) => {
            let (host, tail) = rest
                .split_once(']')
                .ok_or_else(|| refuse("the bracket is not closed", None))?;
            let bare = host
                .split_once('%')
                .map_or(host, |(address, _zone)| address);
            if bare.parse::<Ipv6Addr>().is_err() {
                return Err(refuse(
                    "what stands in brackets is not an IPv6 address",
                    None,
                ));
            }
            (host, tail.strip_prefix(':'))
        }
        None => match input.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (input, None),
        },
    };
    let Some(port) = port else {
        let example = format!("{input}:{}", role.default_port());
        return Err(refuse("the port is missing", Some(example)));
    };
    if host.is_empty() {
        return Err(refuse("the host is missing", None));
    }
    if !input.starts_with('[') && host.contains(':') {
        return Err(refuse(
            "it has more than one colon, which only an IPv6 address in brackets may",
            None,
        ));
    }
    if !input.starts_with('[') {
        check_name(host).map_err(|reason| refuse(reason, None))?;
    }
    match port.parse::<u16>() {
        // `parse` would also take a leading plus sign.
        Ok(number) if number > 0 && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Ok(TargetSpec {
                role,
                host: host.to_owned(),
                port: number,
            })
        }
        _ => Err(refuse("the port is not a number from 1 to 65535", None)),
    }
}

/// What a name server would only answer with "no such name": RFC 1123, section 2.1, and underscores, which some use.
fn check_name(host: &str) -> Result<(), &'static str> {
    if !host.is_ascii() {
        return Err(
            "a host name has no letters beyond a to z; an international one has a form that begins with xn--",
        );
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if !host.bytes().all(allowed) {
        return Err("a host cannot hold that character");
    }
    let last = host.trim_end_matches('.').rsplit('.').next();
    let is_number = last.is_some_and(|label| label.bytes().all(|byte| byte.is_ascii_digit()));
    if is_number && host.parse::<Ipv4Addr>().is_err() {
        return Err("a host that ends in a number is an IPv4 address, and this is none");
    }
    Ok(())
}

/// An IPv6 address as it should have been written: its last group may have been meant as the port.
fn bracketed(role: Role, input: &str) -> String {
    let whole = format!("[{input}]:{}", role.default_port());
    let meant = input.rsplit_once(':').filter(|(address, port)| {
        address.parse::<Ipv6Addr>().is_ok() && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    match meant {
        Some((address, port)) => {
            format!("[{address}]:{port}, or {whole} if {port} is part of the address")
        }
        None => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(input: &str) -> Result<(String, u16), String> {
        parse(Role::EtcdClient, input)
            .map(|spec| (spec.host, spec.port))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn accepts_names_and_both_families() {
        assert_eq!(
            spec("etcd-1.example:2379"),
            Ok(("etcd-1.example".into(), 2379))
        );
        assert_eq!(spec("etcd_1.example.:1"), Ok(("etcd_1.example.".into(), 1)));
        assert_eq!(spec("10.1.0.2:1"), Ok(("10.1.0.2".into(), 1)));
        assert_eq!(spec("[fd00::2]:65535"), Ok(("fd00::2".into(), 65_535)));
        assert_eq!(
            spec("[fe80::1%eth0]:2379"),
            Ok(("fe80::1%eth0".into(), 2379))
        );
    }

    #[test]
    fn a_port_without_brackets_is_seen() {
        let refused = |input| spec(input).unwrap_err();
        assert!(refused("2001:db8::1:2379").ends_with(
            "write it as [2001:db8::1]:2379, or [2001:db8::1:2379]:2379 if 2379 is part of the address"
        ));
        assert!(refused("fd00::a").ends_with("write it as [fd00::a]:2379"));
        assert!(refused("1:2:3:4:5:6:7:8").ends_with("write it as [1:2:3:4:5:6:7:8]:2379"));
    }

    #[test]
    fn displays_what_it_parsed() {
        for input in ["etcd-1:2379", "10.1.0.2:2379", "[fd00::2]:2379"] {
            assert_eq!(parse(Role::EtcdPeer, input).unwrap().to_string(), input);
        }
    }

    #[test]
    fn refuses_with_input_reason_and_remedy() {
        for (input, reason, remedy) in [
            ("10.1.0.2", "port is missing", "10.1.0.2:2379"),
            ("fd00::2", "needs brackets", "[fd00::2]:2379"),
            ("[fd00::2]", "port is missing", "[fd00::2]:2379"),
            ("[fd00::2:2379", "not closed", "HOST:PORT"),
            ("[10.1.0.2]:2379", "not an IPv6", "HOST:PORT"),
            ("https://10.1.0.2:2379", "URL", "HOST:PORT"),
            (":2379", "host is missing", "HOST:PORT"),
            ("a b:2379", "character", "HOST:PORT"),
            ("*:2379", "character", "HOST:PORT"),
            ("étcd:2379", "xn--", "HOST:PORT"),
            ("10.0.0.256:2379", "IPv4 address", "HOST:PORT"),
            ("10.0.1:2379", "IPv4 address", "HOST:PORT"),
            ("a:1,b:2", "a list", "a:1, and each of the others"),
            ("host:0", "1 to 65535", "HOST:PORT"),
            ("host:70000", "1 to 65535", "HOST:PORT"),
            ("host:+1", "1 to 65535", "HOST:PORT"),
            ("host:", "1 to 65535", "HOST:PORT"),
            ("", "empty", "HOST:PORT"),
            ("10.0.0.1:2379:2380", "more than one colon", "HOST:PORT"),
        ] {
            let error = spec(input).unwrap_err();
            assert!(error.contains(&format!("`{input}`")), "{error}");
            assert!(error.contains(reason), "{error}");
            assert!(error.contains(remedy), "{error}");
        }
    }
}
