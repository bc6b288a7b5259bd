use std::fmt::Write;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use super::*;

/// One clear sentence: the file, the reason, nothing secret.
pub(super) fn check(node: &Node, expected: &[&str]) {
    let begun = Instant::now();
    let error = match node.discover() {
        Ok(found) => found
            .notes
            .iter()
            .find(|note| note.warns)
            .unwrap_or_else(|| panic!("accepted, expected {expected:?}"))
            .text
            .clone(),
        Err(error) => error.to_string(),
    };
    assert!(begun.elapsed() < Duration::from_secs(10), "slow: {error}");
    for part in expected {
        assert!(error.contains(part), "{error:?} lacks {part:?}");
    }
    assert!(!error.contains(TOKEN_SECRET), "{error}");
    assert!(!error.contains('\n'), "{error}");
}

pub(super) fn joining(text: impl AsRef<[u8]>) -> Node {
    Node::new().put(JOIN, text)
}

/// A join configuration with one line replaced.
fn with(line: &str, replacement: &str) -> Node {
    let text = join_config("v1beta3", "controlPlane: {}\n");
    assert!(text.contains(line));
    joining(text.replace(line, replacement))
}

#[test]
fn a_named_file_has_to_be_there() {
    let error = Node::new()
        .discover_with("/nowhere.yaml")
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("/nowhere.yaml") && error.contains("check the path"),
        "{error}"
    );
    let node = Node::new().put("/x.yaml", "apiVersion: v1\nkind: Pod\n");
    let error = node.discover_with("/x.yaml").err().unwrap().to_string();
    assert!(error.contains("neither a JoinConfiguration"), "{error}");
}

#[test]
fn unreadable_file_is_named() {
    // root reads everything, so the case is a path through a file that a link makes too long.
    let node = Node::new().put("/run/kubeadm/x", "");
    symlink("a".repeat(300), node.path(JOIN)).unwrap();
    check(
        &node,
        &["kubeadm-join-config.yaml", "cannot read", "check the path"],
    );
}

#[test]
fn wrong_yaml() {
    let file = "kubeadm-join-config.yaml";
    let token = format!("token: {TOKEN}");
    check(&joining(format!("a: [1, 2\n{token}\n")), &[file, "line"]);
    check(
        &joining(format!("a: b: c\n{token}: {TOKEN}")),
        &[file, "line 1"],
    );
    check(&joining(format!("{{{token}")), &[file, "YAML"]);
    check(
        &joining(format!("a:\n\t- {token}\n")),
        &[file, "YAML at line 2"],
    );
    check(&joining(format!("a: \"{TOKEN}\n")), &[file, "YAML"]);
    check(
        &joining(format!("{token}\n{token}\n")),
        &[file, "the same key", "line 2"],
    );
    check(&joining(format!("a: *{TOKEN}\n")), &[file, "line 1"]);
    check(&joining("a: &a [*a]\n"), &[file, "line 1"]);
    check(&joining(format!("? [{TOKEN}]\n: b\n")), &[file, "key"]);
    check(&joining("a: .inf\nb: [.nan]\n"), &[file, "kind"]);
}

#[test]
fn bombs() {
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..10 {
        let below = format!("*a{}", level - 1);
        let list = vec![below; 10].join(",");
        writeln!(bomb, "a{level}: &a{level} [{list}]").unwrap();
    }
    let much = "larger, deeper or more often aliased";
    check(&joining(&bomb), &[JOIN, much]);
    let merges = "a: &a {x: 1}\n".to_owned() + &"b: {<<: *a}\n".replace('b', "k");
    check(&joining(merges.repeat(200)), &[JOIN]);
    check(&joining("[".repeat(10_000)), &[JOIN]);
    check(
        &joining("a:\n".to_owned() + &" ".repeat(4) + &"- ".repeat(5_000)),
        &[JOIN],
    );
    check(&joining("---\na: 1\n".repeat(1_000)), &[JOIN]);
    check(&joining("- 1\n".repeat(200_000)), &[JOIN, much]);
}

#[test]
fn wrong_fields() {
    let endpoint = "discovery.bootstrapToken.apiServerEndpoint";
    let address = "apiServerEndpoint: api.example:6443";
    check(&with(address, "x: y"), &[endpoint, "missing"]);
    check(
        &with(address, "apiServerEndpoint: [a]"),
        &[endpoint, "a list where text"],
    );
    check(
        &with(address, "apiServerEndpoint: {a: b}"),
        &[endpoint, "a mapping where text", "line 5"],
    );
    check(
        &with(address, "apiServerEndpoint: api.example"),
        &[endpoint, "port is missing"],
    );
    check(
        &with(address, "apiServerEndpoint: api.example:0"),
        &[endpoint, "1 to 65535"],
    );
    check(
        &with(address, "apiServerEndpoint: 'http://a:1'"),
        &[endpoint, "TLS"],
    );
    check(
        &with(
            address,
            &format!("apiServerEndpoint: 'https://u:{TOKEN_SECRET}@a:1'"),
        ),
        &[endpoint, "password"],
    );
    let token = &format!("token: {TOKEN}");
    for wrong in [
        format!("token: {TOKEN_SECRET}"),
        format!("token: {}", TOKEN.to_uppercase()),
        format!("token: [{TOKEN}]"),
        format!("token: {{a: {TOKEN}}}"),
        format!("token: {TOKEN}x"),
    ] {
        check(
            &with(token, &wrong),
            &["discovery.bootstrapToken.token", JOIN],
        );
    }
    let pin = &format!("- {HASH}");
    let field = "discovery.bootstrapToken.caCertHashes[0]";
    check(&with(pin, "- sha1:00"), &[field, "sha256:"]);
    check(&with(pin, "- sha256:00"), &[field, "64 hexadecimal"]);
    check(
        &with(pin, &format!("- sha256:{}", "g".repeat(64))),
        &[field, "64"],
    );
    check(&with(pin, "- [a]"), &[field, "a list where text"]);
    check(
        &with(
            &format!("caCertHashes:\n    - {HASH}"),
            &format!("caCertHashes: {HASH}"),
        ),
        &["caCertHashes", "text where a list"],
    );
    check(
        &with(
            pin,
            &format!("- {HASH}\n    unsafeSkipCAVerification: perhaps"),
        ),
        &["unsafeSkipCAVerification", "neither true nor false"],
    );
    check(
        &with("controlPlane: {}", "controlPlane: true"),
        &["controlPlane", "mapping"],
    );
    check(
        &with("controlPlane: {}", "controlPlane: [a]"),
        &["controlPlane", "a list"],
    );
    check(
        &with("discovery:\n", "discovery:\n  file: {kubeConfigPath: /x}\n"),
        &["discovery", "only one"],
    );
    check(&with("kind: JoinConfiguration\n", ""), &["kind"]);
    let twice = join_config("v1beta3", "") + "---\n" + &join_config("v1beta3", "");
    check(&joining(twice), &["kind", "second JoinConfiguration"]);
}

#[test]
fn wrong_discovery_files() {
    let join = "apiVersion: kubeadm.k8s.io/v1beta3\nkind: JoinConfiguration\ndiscovery:\n  file:\n    \
                kubeConfigPath: PATH\n";
    let with_file = |text: &str| {
        Node::new()
            .put(JOIN, join.replace("PATH", "/d.conf"))
            .put("/d.conf", text)
    };
    check(
        &joining(join.replace("PATH", "")),
        &["kubeConfigPath", "missing"],
    );
    check(
        &joining(join.replace("PATH", "/nowhere.conf")),
        &["/nowhere.conf", "cannot read"],
    );
    check(
        &joining(join.replace("PATH", "https://a/b")),
        &["URL", "--apiserver"],
    );
    check(&with_file("a: b"), &["d.conf", "clusters", "missing"]);
    check(
        &with_file("clusters: {a: b}"),
        &["d.conf", "clusters", "a list"],
    );
    check(
        &with_file("clusters: [{name: a, cluster: {}}]"),
        &["server", "missing"],
    );
    check(
        &with_file("clusters: [{name: a, cluster: {server: 'http://a:1'}}]"),
        &["server", "TLS"],
    );
    check(
        &with_file("clusters: [{name: a, cluster: {}}, {name: b, cluster: {}}]"),
        &["clusters", "current-context"],
    );
    check(
        &with_file("current-context: x"),
        &["current-context", "no context"],
    );
    check(
        &with_file("current-context: x\ncontexts: [{name: x, context: {cluster: c}}]"),
        &["cluster", "no cluster of that name"],
    );
    check(
        &with_file(
            "clusters: [{name: a, cluster: {server: 'https://a:1', certificate-authority-data: '%%'}}]",
        ),
        &["certificate-authority-data", "not base64"],
    );
}

#[test]
fn wrong_files_by_the_way_are_notes() {
    let good = join_config("v1beta3", "controlPlane: {}\n");
    let beside = |path: &str, text: &str| Node::new().put(JOIN, &good).put(path, text);
    let admin = "/etc/kubernetes/admin.conf";
    check(&beside(admin, "a: ["), &["admin.conf", "YAML"]);
    check(
        &beside(
            admin,
            &kubeconfig(
                "https://a:6443",
                &format!("{{client-key-data: {TOKEN_SECRET}}}"),
            ),
        ),
        &["admin.conf", "users[0].user", "only one of"],
    );
    let etcd = "/etc/kubernetes/manifests/etcd.yaml";
    check(
        &beside(etcd, "kind: Deployment"),
        &["etcd.yaml", "kind", "not Pod"],
    );
    check(
        &beside(etcd, "kind: Pod"),
        &["etcd.yaml", "none of them runs etcd"],
    );
    let change = |from: &str, to: &str| {
        assert!(ETCD_MANIFEST.contains(from));
        beside(etcd, &ETCD_MANIFEST.replace(from, to))
    };
    let url = "--advertise-client-urls=https://10.77.0.12:2379";
    check(
        &change(url, "--advertise-client-urls=https://$(IP):2379"),
        &["kubelet fills in"],
    );
    check(
        &change(url, "--advertise-client-urls=https://10.77.0.12"),
        &["port is missing"],
    );
    check(
        &change(url, "--advertise-client-urls=http://10.77.0.12:2379"),
        &["plain HTTP"],
    );
    check(
        &change("--name=cp2", "--heartbeat-interval=100ms"),
        &["--heartbeat-interval", "milliseconds"],
    );
    check(
        &change("--name=cp2", "--election-timeout=0"),
        &["--election-timeout"],
    );
    check(
        &change("--initial-cluster=cp1=", "--initial-cluster=cp1:"),
        &["--initial-cluster", "NAME=URL"],
    );
    check(
        &beside(
            "/etc/kubernetes/manifests/kube-apiserver.yaml",
            &APISERVER_MANIFEST.replace("--secure-port=6443", "--secure-port=x"),
        ),
        &["--secure-port", "not a port"],
    );
}
