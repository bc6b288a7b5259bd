use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::hmac;
use tokio::time::Instant;

use super::*;
use crate::discover::online::{Trust, TrustOutcome, api_server_trust};
use crate::discover::{ApiTrust, BootstrapToken, CaHash, Found, Origin, Pem};

const SECRET: &str = "0123456789abcdef";

fn origin() -> Origin {
    Origin::Flag("--join-config".to_owned())
}

fn trust(pin: Option<&Authority>, token: bool) -> ApiTrust {
    ApiTrust {
        pins: pin.map(|ca| Found::new(vec![CaHash::of(&ca.certificate).unwrap()], origin())),
        token: token.then(|| {
            let token = BootstrapToken::parse(&format!("abcdef.{SECRET}")).unwrap();
            Found::new(token, origin())
        }),
        ..ApiTrust::default()
    }
}

fn sign(content: &str, secret: &str) -> String {
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","kid":"abcdef"}"#);
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(content));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, signed.as_bytes());
    format!("{header}..{}", URL_SAFE_NO_PAD.encode(tag))
}

fn cluster_info(cas: &[&Authority], secret: Option<&str>) -> String {
    let pem: String = cas.iter().map(|ca| ca.pem.as_str()).collect();
    let kubeconfig = format!(
        "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {}\n    \
         server: https://api.example:6443\n  name: \"\"\ncontexts: null\ncurrent-context: \"\"\nkind: Config\n\
         preferences: {{}}\nusers: null\n",
        STANDARD.encode(pem)
    );
    let mut data = serde_json::json!({"kubeconfig": kubeconfig});
    if let Some(secret) = secret {
        data["jws-kubeconfig-abcdef"] = sign(&kubeconfig, secret).into();
    }
    serde_json::json!({"kind": "ConfigMap", "apiVersion": "v1", "data": data}).to_string()
}

async fn decide(found: &ApiTrust, server: &Server) -> TrustOutcome {
    let deadline = Instant::now() + Duration::from_secs(10);
    let outcome = api_server_trust(found, Some(&server.api()), deadline).await;
    for request in server.requests() {
        assert!(request.starts_with("GET /api/v1/namespaces/kube-public/configmaps/cluster-info "));
        assert!(
            !request.to_lowercase().contains("authorization"),
            "{request}"
        );
        assert!(!request.contains(SECRET), "{request}");
    }
    let said = format!("{} {:?}", outcome.text, outcome.warnings);
    assert!(!said.contains(SECRET), "{said}");
    outcome
}

fn trusts(outcome: &TrustOutcome, ca: &Authority) {
    match &outcome.trust {
        Trust::Ca(bundle) => assert!(bundle.certificates().contains(&ca.certificate)),
        other => panic!("{other:?}: {}", outcome.text),
    }
}

#[tokio::test]
async fn pinned_ca_verifies_the_connection_it_came_over() {
    let ca = Authority::new("kubernetes");
    let body = cluster_info(&[&ca], Some(SECRET));
    let server = Server::start(&ca, "127.0.0.1", 200, &body).await;
    let outcome = decide(&trust(Some(&ca), true), &server).await;
    trusts(&outcome, &ca);
    assert_eq!((outcome.connections, server.requests().len()), (1, 1));
    assert!(outcome.warnings.is_empty(), "{:?}", outcome.warnings);
    assert!(
        outcome.text.contains("matches the hash"),
        "{}",
        outcome.text
    );
}

#[tokio::test]
async fn another_ca_is_refused() {
    let (ca, false_ca) = (Authority::new("kubernetes"), Authority::new("mallory"));
    let body = cluster_info(&[&false_ca], None);
    let server = Server::start(&false_ca, "127.0.0.1", 200, &body).await;
    let outcome = decide(&trust(Some(&ca), true), &server).await;
    assert!(matches!(outcome.trust, Trust::Refused));
    assert!(
        outcome.text.contains("does not match the hash"),
        "{}",
        outcome.text
    );
}

#[tokio::test]
async fn true_cluster_info_passed_on_by_another_server_is_refused() {
    let (ca, false_ca) = (Authority::new("kubernetes"), Authority::new("mallory"));
    let body = cluster_info(&[&ca], Some(SECRET));
    let server = Server::start(&false_ca, "127.0.0.1", 200, &body).await;
    let outcome = decide(&trust(Some(&ca), true), &server).await;
    assert!(matches!(outcome.trust, Trust::Refused));
    assert!(
        outcome.text.contains("does not vouch for"),
        "{}",
        outcome.text
    );
}

#[tokio::test]
async fn a_second_ca_beside_the_true_one_is_not_trusted() {
    let (ca, false_ca) = (Authority::new("kubernetes"), Authority::new("mallory"));
    let body = cluster_info(&[&ca, &false_ca], Some("wrongwrongwrongw"));
    let server = Server::start(&false_ca, "127.0.0.1", 200, &body).await;
    let outcome = decide(&trust(Some(&ca), true), &server).await;
    assert!(matches!(outcome.trust, Trust::Refused));
    assert!(
        outcome.warnings[0].contains("kubeadm join"),
        "{:?}",
        outcome.warnings
    );
}

#[tokio::test]
async fn another_name_in_the_certificate_is_refused() {
    let ca = Authority::new("kubernetes");
    let body = cluster_info(&[&ca], Some(SECRET));
    let server = Server::start(&ca, "10.9.9.9", 200, &body).await;
    assert!(matches!(
        decide(&trust(Some(&ca), true), &server).await.trust,
        Trust::Refused
    ));
}

#[tokio::test]
async fn token_alone_vouches_where_nothing_is_pinned() {
    let ca = Authority::new("kubernetes");
    let body = cluster_info(&[&ca], Some(SECRET));
    let server = Server::start(&ca, "127.0.0.1", 200, &body).await;
    trusts(&decide(&trust(None, true), &server).await, &ca);
    let body = cluster_info(&[&ca], Some("wrongwrongwrongw"));
    let server = Server::start(&ca, "127.0.0.1", 200, &body).await;
    assert!(matches!(
        decide(&trust(None, true), &server).await.trust,
        Trust::None
    ));
}

#[tokio::test]
async fn an_expired_token_is_a_warning() {
    let ca = Authority::new("kubernetes");
    let server = Server::start(&ca, "127.0.0.1", 200, &cluster_info(&[&ca], None)).await;
    let outcome = decide(&trust(Some(&ca), true), &server).await;
    trusts(&outcome, &ca);
    assert!(
        outcome.warnings[0].contains("kubeadm token create"),
        "{:?}",
        outcome.warnings
    );
}

#[tokio::test]
async fn a_ca_on_disk_spares_the_connection() {
    let (ca, other) = (Authority::new("kubernetes"), Authority::new("kubernetes"));
    let body = cluster_info(&[&ca], Some(SECRET));
    let server = Server::start(&ca, "127.0.0.1", 200, &body).await;
    let mut found = trust(Some(&ca), true);
    let pem =
        |ca: &Authority| Found::new(Pem::Inline(ca.pem.clone().into_bytes().into()), origin());
    found.cas = vec![pem(&ca)];
    let outcome = decide(&found, &server).await;
    trusts(&outcome, &ca);
    assert_eq!((outcome.connections, server.requests().len()), (0, 0));
    // One of another cluster is warned about and passed over.
    found.cas = vec![pem(&other)];
    let outcome = decide(&found, &server).await;
    trusts(&outcome, &ca);
    assert_eq!(outcome.connections, 1);
    assert!(
        outcome.warnings[0].contains("another cluster"),
        "{:?}",
        outcome.warnings
    );
}

#[tokio::test]
async fn what_cannot_be_read_leaves_the_server_unverified() {
    let ca = Authority::new("kubernetes");
    for (status, body, reason) in [
        (403, "{}", "anonymous"),
        (401, "{}", "anonymous"),
        (404, "{}", "no cluster-info"),
        (500, "", "HTTP 500"),
        (200, "", "cluster-info of"),
        (200, "<html>", "cluster-info of"),
        (200, "{\"data\": {}}", "data.kubeconfig"),
        (200, "{\"data\": {\"kubeconfig\": \"a: b\"}}", "clusters"),
        (200, "{\"data\": [1]}", "a list where a mapping"),
    ] {
        let server = Server::start(&ca, "127.0.0.1", status, body).await;
        let outcome = decide(&trust(Some(&ca), true), &server).await;
        assert!(matches!(outcome.trust, Trust::None), "{status} {body}");
        assert!(outcome.text.contains(reason), "{}", outcome.text);
    }
    let nobody = ApiServer {
        address: SocketAddr::from(([127, 0, 0, 1], 1)),
        ..Server::start(&ca, "127.0.0.1", 200, "").await.api()
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    let outcome = api_server_trust(&trust(Some(&ca), true), Some(&nobody), deadline).await;
    assert!(
        outcome.text.contains("cannot be connected to"),
        "{}",
        outcome.text
    );
}
