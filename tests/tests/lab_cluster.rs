//! The cluster in the lab is a real one, and it is reached through the link.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use joinprobe_lab::apiserver::Answer;
use joinprobe_lab::capture::Flow;
use joinprobe_lab::etcd::{CLIENT_PORT, PEER_PORT};
use joinprobe_lab::lab::{APISERVER_PORT, Node};
use joinprobe_lab::link::DEVICE;
use joinprobe_lab::pki::{Authority, Pair};
use joinprobe_lab::{Capture, Lab, attempts, on_time, take_turn};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

type Tls = StreamOwned<ClientConnection, TcpStream>;

/// A TLS connection from the joining node, after its handshake.
fn connect(from: &Node, to: SocketAddr, ca: &Authority, client: Option<&Pair>) -> Result<Tls> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&ca.pair.cert)?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let config = match client {
        Some(pair) => config.with_client_auth_cert(
            vec![CertificateDer::from_pem_file(&pair.cert)?],
            PrivateKeyDer::from_pem_file(&pair.key)?,
        )?,
        None => config.with_no_client_auth(),
    };
    let mut connection = ClientConnection::new(Arc::new(config), ServerName::from(to.ip()))?;
    let mut stream = from
        .namespace
        .enter(|| TcpStream::connect_timeout(&to, Duration::from_secs(5)))??;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    connection.complete_io(&mut stream)?;
    Ok(StreamOwned::new(connection, stream))
}

/// Status line and body of one request over an established connection.
fn get(stream: &mut Tls, path: &str) -> Result<(String, String)> {
    stream.write_all(
        format!("GET {path} HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n").as_bytes(),
    )?;
    let mut bytes = Vec::new();
    // Servers may close without a TLS farewell.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes)?;
    let (head, body) = text.split_once("\r\n\r\n").context("no HTTP answer")?;
    Ok((
        head.lines().next().unwrap_or_default().to_owned(),
        body.to_owned(),
    ))
}

#[test]
fn a_cluster_of_three_behind_ten_milliseconds() -> Result<()> {
    let Some(_turn) = take_turn(&["etcd", "tcpdump"])? else {
        return Ok(());
    };
    let started = Instant::now();
    let lab = Lab::builder().start()?;
    println!("up after {:?}", started.elapsed());
    lab.set_rtt(Duration::from_millis(10));

    attempts(3, || {
        let capture = Capture::start(&lab.joiner.namespace, DEVICE)?;
        for node in &lab.member_nodes {
            for to in [node.at(CLIENT_PORT), node.at_v6(CLIENT_PORT)] {
                let mut stream = connect(
                    &lab.joiner,
                    to,
                    &lab.pki.etcd,
                    Some(&lab.pki.healthcheck_client),
                )?;
                let (status, body) = get(&mut stream, "/health")?;
                assert_eq!(
                    (status.as_str(), body.trim()),
                    ("HTTP/1.1 200 OK", r#"{"health":"true"}"#)
                );
            }
        }
        let recording = capture.stop()?;
        let flows = recording.flows();
        assert_eq!(flows.len(), 6);
        let mut rtts: Vec<Duration> = flows.iter().filter_map(Flow::handshake_rtt).collect();
        rtts.sort();
        let least = rtts.first().context("no handshake")?;
        assert!(*least >= Duration::from_millis(10), "{rtts:?}");
        // The link is a process: it may be held up with one packet or another.
        let median = rtts[rtts.len() / 2];
        on_time(median < Duration::from_millis(12), || format!("{rtts:?}"))
    })?;

    let before = lab.etcd.metrics()?;
    assert!(
        before.iter().all(|metrics| metrics.revision() == Some(1)),
        "nobody wrote anything"
    );
    std::thread::sleep(Duration::from_secs(1));
    let after = lab.etcd.metrics()?;
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(
            before.proposals_committed(),
            after.proposals_committed(),
            "an idle cluster is idle"
        );
        assert!(before.proposals_committed() > Some(0));
    }
    Ok(())
}

#[test]
fn both_ports_ask_for_a_client_certificate() -> Result<()> {
    let Some(_turn) = take_turn(&["etcd"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(1).start()?;
    let (other_ca, other_client) = lab.pki.foreign()?;
    let node = &lab.member_nodes[0];
    for port in [CLIENT_PORT, PEER_PORT] {
        let answers = |client: Option<&Pair>| {
            let stream = connect(&lab.joiner, node.at(port), &lab.pki.etcd, client);
            stream.and_then(|mut stream| get(&mut stream, "/version"))
        };
        let (status, _) = answers(Some(&lab.pki.healthcheck_client))?;
        assert_eq!(status, "HTTP/1.1 200 OK");
        assert!(answers(None).is_err(), "port {port}");
        assert!(answers(Some(&other_client)).is_err(), "port {port}");
        assert!(
            connect(
                &lab.joiner,
                node.at(port),
                &other_ca,
                Some(&lab.pki.healthcheck_client)
            )
            .is_err()
        );
    }
    assert!(lab.etcd.members[0].log()?.contains("rejected connection"));
    Ok(())
}

#[test]
fn the_api_server_answers_as_to_an_anonymous_client() -> Result<()> {
    let Some(_turn) = take_turn(&["etcd"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(1).start()?;
    let ask = |to: SocketAddr, path: &str| {
        connect(&lab.joiner, to, &lab.pki.kubernetes, None)
            .and_then(|mut stream| get(&mut stream, path))
    };
    let to = lab.apiserver_node.at(APISERVER_PORT);
    assert_eq!(
        ask(to, "/readyz")?,
        ("HTTP/1.1 200 OK".to_owned(), "ok".to_owned())
    );
    assert_eq!(
        ask(lab.apiserver_node.at_v6(APISERVER_PORT), "/livez?verbose")?.1,
        "ok"
    );
    assert!(ask(to, "/version")?.1.contains("gitVersion"));
    assert_eq!(ask(to, "/api/v1/secrets")?.0, "HTTP/1.1 403 Forbidden");
    lab.apiserver.answer("/readyz", Answer::not_ready());
    assert_eq!(ask(to, "/readyz")?.0, "HTTP/1.1 503 Service Unavailable");
    lab.apiserver.answer("/readyz", Answer::unauthorized());
    assert_eq!(ask(to, "/readyz")?.0, "HTTP/1.1 401 Unauthorized");
    let asked: Vec<String> = lab
        .apiserver
        .requests()
        .into_iter()
        .map(|request| request.path)
        .collect();
    assert_eq!(
        asked,
        [
            "/readyz",
            "/livez?verbose",
            "/version",
            "/api/v1/secrets",
            "/readyz",
            "/readyz"
        ]
    );
    assert!(
        lab.apiserver
            .requests()
            .iter()
            .all(|request| request.method == "GET" && !request.authorized)
    );
    Ok(())
}
