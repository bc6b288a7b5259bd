//! Against a name server of our own: a UDP socket that answers by the first label of the question.

use std::net::{Ipv4Addr, UdpSocket};
use std::thread;

use super::*;
use crate::target::{Role, parse};

/// Response codes of RFC 1035 section 4.1.1.
const SERVER_FAILURE: u8 = 2;
const NAME_ERROR: u8 = 3;
/// Types of RFC 1035 section 3.2.2 and RFC 3596.
const A: u8 = 1;
const AAAA: u8 = 28;
/// RFC 2782.
const SRV: u8 = 33;

/// Starts the server; its thread ends with the test process.
fn name_server() -> u16 {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = socket.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            if let Some(answer) = answer(&buffer[..length]) {
                let _ = socket.send_to(&answer, from);
            }
        }
    });
    port
}

fn answer(query: &[u8]) -> Option<Vec<u8>> {
    // The question: labels up to an empty one, then type and class.
    let mut labels = Vec::new();
    let mut at = 12;
    while query[at] > 0 {
        let end = at + 1 + usize::from(query[at]);
        labels.push(String::from_utf8_lossy(&query[at + 1..end]).into_owned());
        at = end;
    }
    let (kind, question) = (query[at + 2], &query[12..at + 5]);
    let (code, addresses): (u8, &[&[u8]]) = match (labels.join(".").as_str(), kind) {
        ("two.test", A) => (0, &[&[192, 0, 2, 1], &[192, 0, 2, 2]]),
        ("two.test", AAAA) => (
            0,
            &[&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]],
        ),
        ("four.test", A) => (0, &[&[192, 0, 2, 4], &[192, 0, 2, 4]]),
        ("half.test", A) => (0, &[&[192, 0, 2, 5]]),
        ("four.test" | "bare.test", _) => (0, &[]),
        // Priority, weight, port 2379 and 2381, target; the last says that the service is not offered.
        ("_etcd-client-ssl._tcp.srv.test", SRV) => (
            0,
            &[
                b"\0\0\0\0\x09\x4b\x02m1\x04test\0",
                b"\0\0\0\0\x09\x4d\x02m2\x04test\0",
                b"\0\0\0\0\0\0\0",
            ],
        ),
        ("failing.test", _) => (SERVER_FAILURE, &[]),
        ("mute.test" | "half.test", _) => return None,
        _ => (NAME_ERROR, &[]),
    };
    let mut packet = vec![query[0], query[1], 0x85, 0x80 | code, 0, 1, 0];
    packet.push(u8::try_from(addresses.len()).ok()?);
    packet.extend([0; 4]);
    packet.extend(question);
    for address in addresses {
        // The name by reference, type, class IN, 60 s, length.
        packet.extend([0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 60, 0]);
        packet.push(u8::try_from(address.len()).ok()?);
        packet.extend(*address);
    }
    Some(packet)
}

async fn resolve(port: u16, host: &str) -> Result<Resolved, ProbeFailure> {
    let mut options = ResolverOpts::default();
    options.timeout = Duration::from_millis(500);
    options.attempts = 1;
    ask(port, options, host).await
}

async fn ask(port: u16, options: ResolverOpts, host: &str) -> Result<Resolved, ProbeFailure> {
    let mut server = NameServerConfig::udp(IpAddr::from(Ipv4Addr::LOCALHOST));
    server.connections[0].port = port;
    let search = vec!["test.".parse().unwrap()];
    let resolver = Resolver::new(
        &ResolverConfig::from_parts(None, search, vec![server]),
        options,
    );
    let spec = parse(Role::EtcdClient, &format!("{host}:2379")).unwrap();
    resolver
        .resolve(&spec, Instant::now() + Duration::from_secs(5))
        .await
}

fn addresses(found: &Resolved) -> Vec<String> {
    let mut addresses: Vec<_> = found.targets.iter().map(ToString::to_string).collect();
    addresses.sort();
    addresses
}

#[tokio::test]
async fn each_address_is_a_target() {
    let port = name_server();
    let found = resolve(port, "two.test").await.unwrap();
    assert_eq!(
        addresses(&found),
        ["192.0.2.1:2379", "192.0.2.2:2379", "[2001:db8::1]:2379"]
    );
    assert!(
        found
            .targets
            .iter()
            .all(|target| target.spec.host == "two.test")
    );
    assert!(found.took.is_some());
    // The same address twice is one target; a missing family is none.
    assert_eq!(
        addresses(&resolve(port, "four.test").await.unwrap()),
        ["192.0.2.4:2379"]
    );
    // Search domains, and none for a name that ends in a dot.
    assert_eq!(
        addresses(&resolve(port, "four").await.unwrap()),
        ["192.0.2.4:2379"]
    );
    assert!(resolve(port, "four.").await.is_err());
    assert!(resolve(port, "four.test.").await.is_ok());
}

#[tokio::test]
async fn says_why_a_name_has_no_address() {
    let port = name_server();
    let closed = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|socket| socket.local_addr())
        .unwrap()
        .port();
    for (port, host, reason) in [
        (port, "missing.test", "does not exist in DNS"),
        (port, "bare.test", "has no address"),
        (port, "failing.test", "Server Failure"),
        (port, "mute.test", "no name server (127.0.0.1) answered"),
        (closed, "two.test", "127.0.0.1"),
    ] {
        let failure = resolve(port, host).await.unwrap_err();
        assert_eq!((failure.stage, failure.result), (Stage::Dns, "unresolved"));
        assert!(
            failure.text.contains(&format!("`{host}`")),
            "{}",
            failure.text
        );
        assert!(failure.text.contains(reason), "{}", failure.text);
    }
}

#[tokio::test]
async fn literals_need_no_name_server() {
    let found = resolve(1, "192.0.2.9").await.unwrap();
    assert_eq!(
        (addresses(&found), found.took),
        (vec!["192.0.2.9:2379".to_owned()], None)
    );
    let found = resolve(1, "[fd00::2]").await.unwrap();
    assert_eq!(addresses(&found), ["[fd00::2]:2379"]);
    // Loopback is the first interface of every network namespace.
    for zone in ["lo", "1"] {
        let found = resolve(1, &format!("[fe80::1%{zone}]")).await.unwrap();
        assert_eq!(addresses(&found), ["[fe80::1%1]:2379"]);
        assert_eq!(found.took, None);
    }
    let failure = resolve(1, "[fe80::1%none9]").await.unwrap_err();
    assert!(
        failure.text.contains("interface `none9`"),
        "{}",
        failure.text
    );
}

#[tokio::test]
async fn the_deadline_is_kept() {
    let port = name_server();
    let mut server = NameServerConfig::udp(IpAddr::from(Ipv4Addr::LOCALHOST));
    server.connections[0].port = port;
    let resolver = Resolver::new(
        &ResolverConfig::from_parts(None, Vec::new(), vec![server]),
        ResolverOpts::default(),
    );
    let spec = parse(Role::ApiServer, "mute.test:6443").unwrap();
    let started = Instant::now();
    let failure = resolver
        .resolve(&spec, started + Duration::from_millis(300))
        .await
        .unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(2));
    assert!(failure.text.contains("within 3"), "{}", failure.text);
}

/// Some name servers and firewalls drop AAAA questions.
#[tokio::test]
async fn one_family_does_not_wait_for_the_other() {
    let port = name_server();
    let started = Instant::now();
    let options = ResolverOpts::default();
    let found = ask(port, options, "half.test").await.unwrap();
    assert_eq!(addresses(&found), ["192.0.2.5:2379"]);
    // The resolver alone would wait for two attempts of 5 s.
    assert!(started.elapsed() < Duration::from_secs(4));
}

#[tokio::test]
async fn services_name_hosts_and_ports() {
    let port = name_server();
    let mut server = NameServerConfig::udp(IpAddr::from(Ipv4Addr::LOCALHOST));
    server.connections[0].port = port;
    let mut options = ResolverOpts::default();
    options.timeout = Duration::from_millis(500);
    options.attempts = 1;
    let resolver = Resolver::new(
        &ResolverConfig::from_parts(None, Vec::new(), vec![server]),
        options,
    );
    let services = async |name: &str| {
        let deadline = Instant::now() + Duration::from_secs(5);
        resolver.services(Role::EtcdClient, name, deadline).await
    };
    let found = services("_etcd-client-ssl._tcp.srv.test").await.unwrap();
    let mut found: Vec<_> = found.iter().map(ToString::to_string).collect();
    found.sort();
    assert_eq!(found, ["m1.test:2379", "m2.test:2381"]);
    assert_eq!(
        services("_etcd-client-ssl._tcp.missing.test").await,
        Ok(Vec::new())
    );
    for (name, reason) in [
        ("failing.test", "Server Failure"),
        ("mute.test", "no name server"),
    ] {
        let error = services(name).await.unwrap_err();
        assert!(error.contains(reason) && error.contains(name), "{error}");
    }
}
