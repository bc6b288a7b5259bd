//! Endpoints as Kubernetes' files write them: URLs, and `HOST:PORT`.

use crate::target::{Role, RoleName, TargetSpec, parse};

/// What speaks at an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// TLS, also where no scheme was written.
    Tls,
    /// Plain HTTP.
    Plain,
    /// A Unix socket.
    Unix,
}

/// An endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) scheme: Scheme,
    pub(super) spec: TargetSpec,
}

impl Endpoint {
    /// Whether it is on this host whatever the host is.
    pub(super) fn is_loopback(&self) -> bool {
        is_loopback(&self.spec.host)
    }
}

/// Whether `host` is this host by name or address.
pub(super) fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback() || address.is_unspecified())
}

/// Reads a URL or `HOST:PORT`. `default_port` is what an endpoint without a port means, if anything.
///
/// # Errors
/// Why it is not usable; the input is quoted only where it cannot hold credentials.
pub(super) fn endpoint(
    role: Role,
    input: &str,
    default_port: Option<u16>,
) -> Result<Endpoint, String> {
    let (scheme, rest) = match input.split_once("://") {
        None => (Scheme::Tls, input),
        Some(("https", rest)) => (Scheme::Tls, rest),
        Some(("http", rest)) => (Scheme::Plain, rest),
        Some(("unix" | "unixs", _)) => {
            return Ok(Endpoint {
                scheme: Scheme::Unix,
                spec: TargetSpec {
                    role,
                    host: "localhost".to_owned(),
                    port: role.default_port(),
                },
            });
        }
        Some(_) => return Err("its scheme is not https".to_owned()),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    if authority.contains('@') {
        return Err("it holds a user name or password, which is not supported".to_owned());
    }
    let completed = match default_port {
        Some(port) if !has_port(authority) => format!("{}:{port}", bracketed(authority)),
        _ => authority.to_owned(),
    };
    let spec = parse(role, &completed).map_err(|error| error.to_string())?;
    Ok(Endpoint { scheme, spec })
}

fn has_port(authority: &str) -> bool {
    match authority.rsplit_once(']') {
        Some((_, tail)) => tail.starts_with(':'),
        None => authority.matches(':').count() == 1,
    }
}

/// A bare IPv6 address gets the brackets it needs before a port.
fn bracketed(host: &str) -> String {
    if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &str, default_port: Option<u16>) -> Result<String, String> {
        endpoint(Role::ApiServer, input, default_port)
            .map(|endpoint| format!("{:?} {}", endpoint.scheme, endpoint.spec))
    }

    #[test]
    fn takes_urls_and_plain_addresses() {
        for (input, port, expected) in [
            ("https://10.0.0.1:6443", None, "Tls 10.0.0.1:6443"),
            ("https://api.example", Some(443), "Tls api.example:443"),
            (
                "https://api.example/k8s/clusters/c1",
                Some(443),
                "Tls api.example:443",
            ),
            ("https://[fd00::1]:6443/", None, "Tls [fd00::1]:6443"),
            ("https://[fd00::1]", Some(443), "Tls [fd00::1]:443"),
            ("fd00::1", Some(6443), "Tls [fd00::1]:6443"),
            ("[fe80::1%eth0]:6443", None, "Tls [fe80::1%eth0]:6443"),
            ("api.example:6443", None, "Tls api.example:6443"),
            ("http://10.0.0.1:2379", None, "Plain 10.0.0.1:2379"),
        ] {
            assert_eq!(read(input, port), Ok(expected.to_owned()), "{input}");
        }
        assert!(
            read("unix:///run/etcd.sock", None)
                .unwrap()
                .starts_with("Unix")
        );
    }

    #[test]
    fn refuses_the_rest_without_quoting_credentials() {
        for (input, reason) in [
            ("10.0.0.1", "port is missing"),
            ("ftp://10.0.0.1:1", "scheme"),
            ("https://", "it is empty"),
            ("", "it is empty"),
            ("https://10.0.0.1:99999", "1 to 65535"),
        ] {
            let error = read(input, None).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        let error = read("https://root:hunter2@10.0.0.1:6443", None).unwrap_err();
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[test]
    fn knows_this_host() {
        for host in ["localhost", "127.0.0.1", "127.1.2.3", "::1", "0.0.0.0"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["10.0.0.1", "local", "fd00::1"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
