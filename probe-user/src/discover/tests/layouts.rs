use super::*;
use crate::discover::{NodeKind, Pem};

/// What Cluster API puts on every control-plane node.
const CA_PAIRS: [&str; 8] = [
    "ca.crt",
    "ca.key",
    "etcd/ca.crt",
    "etcd/ca.key",
    "front-proxy-ca.crt",
    "front-proxy-ca.key",
    "sa.pub",
    "sa.key",
];

const AFTER_JOIN: [&str; 8] = [
    "apiserver-etcd-client.crt",
    "apiserver-etcd-client.key",
    "etcd/healthcheck-client.crt",
    "etcd/healthcheck-client.key",
    "etcd/peer.crt",
    "etcd/peer.key",
    "etcd/server.crt",
    "etcd/server.key",
];

fn pairs(node: &Node, found: &Discovery) -> Vec<String> {
    found
        .etcd_credentials
        .iter()
        .map(|credential| {
            assert_eq!(
                node.inside(&credential.ca),
                "/etc/kubernetes/pki/etcd/ca.crt"
            );
            credential.pair.as_ref().map_or_else(
                || "-".to_owned(),
                |(certificate, _)| node.inside(certificate),
            )
        })
        .collect()
}

#[test]
fn cluster_api_control_plane_before_the_join() {
    for path in [JOIN, "/etc/kubeadm.yml"] {
        let node = Node::new().touch("/etc/kubernetes/pki", &CA_PAIRS).put(
            path,
            join_config("v1beta3", "controlPlane:\n  localAPIEndpoint: {}\n"),
        );
        let found = node.discover().unwrap();
        assert_eq!(found.node, NodeKind::JoiningControlPlane);
        assert_eq!(
            targets(&node, &found),
            [format!("apiserver api.example:6443 {path}")]
        );
        let origin = found.targets[0].origins[0].to_string();
        assert!(
            origin.ends_with("(discovery.bootstrapToken.apiServerEndpoint)"),
            "{origin}"
        );
        let trust = &found.api_trust;
        assert_eq!(trust.pins.as_ref().unwrap().value[0].to_string(), HASH);
        assert_eq!(trust.token.as_ref().unwrap().value.id(), "abcdef");
        assert_eq!(trust.cas.len(), 1);
        assert_eq!(pairs(&node, &found), ["-"]);
        let signer = found.etcd_signer.unwrap();
        assert_eq!(node.inside(&signer.key), "/etc/kubernetes/pki/etcd/ca.key");
        assert!(found.cluster_signer.is_some());
        assert_eq!(found.notes, []);
    }
}

#[test]
fn plain_node_before_the_join() {
    let node = Node::new().put(
        "/root/join.yaml",
        join_config("v1beta4", "controlPlane: {}\n"),
    );
    let found = node.discover_with("/root/join.yaml").unwrap();
    assert_eq!(found.node, NodeKind::JoiningControlPlane);
    assert_eq!(
        targets(&node, &found),
        ["apiserver api.example:6443 /root/join.yaml"]
    );
    assert!(found.api_trust.cas.is_empty() && found.etcd_credentials.is_empty());
    assert!(found.etcd_signer.is_none() && found.cluster_signer.is_none());
}

#[test]
fn worker_before_the_join() {
    // A null section is an absent one, for kubeadm too.
    for section in ["", "controlPlane:\n", "controlPlane: null\n"] {
        let node = Node::new().put(JOIN, join_config("v1beta3", section));
        assert_eq!(node.discover().unwrap().node, NodeKind::JoiningWorker);
    }
}

#[test]
fn worker_after_the_join() {
    let node = Node::new().put(
        "/etc/kubernetes/kubelet.conf",
        kubeconfig(
            "https://api.example:6443",
            "{client-certificate: /var/lib/kubelet/pki/c.pem, client-key: /var/lib/kubelet/pki/c.pem}",
        ),
    );
    let found = node.discover().unwrap();
    assert_eq!(found.node, NodeKind::Worker);
    assert_eq!(
        targets(&node, &found),
        ["apiserver api.example:6443 /etc/kubernetes/kubelet.conf"]
    );
    assert!(
        matches!(&found.api_trust.cas[0].value, Pem::Inline(pem) if pem.starts_with(b"-----BEGIN"))
    );
}

#[test]
fn running_control_plane() {
    let node = Node::new()
        .touch("/etc/kubernetes/pki", &CA_PAIRS)
        .touch("/etc/kubernetes/pki", &AFTER_JOIN)
        .put(JOIN, join_config("v1beta3", "controlPlane: {}\n"))
        .put(
            "/etc/kubernetes/admin.conf",
            kubeconfig("https://api.example:6443", "{token: abc}"),
        )
        .put("/etc/kubernetes/manifests/etcd.yaml", ETCD_MANIFEST)
        .put(
            "/etc/kubernetes/manifests/kube-apiserver.yaml",
            APISERVER_MANIFEST,
        );
    let found = node.discover().unwrap();
    assert_eq!(found.node, NodeKind::ControlPlane);
    assert!(found.external_etcd.is_none());
    assert_eq!(
        targets(&node, &found),
        [
            &format!("apiserver api.example:6443 {JOIN}"),
            "etcd-client 10.77.0.12:2379 /etc/kubernetes/manifests/etcd.yaml",
            "etcd-peer 10.77.0.11:2380 /etc/kubernetes/manifests/etcd.yaml",
            "apiserver 10.77.0.12:6443 /etc/kubernetes/manifests/kube-apiserver.yaml",
        ]
    );
    assert_eq!(found.targets[0].origins.len(), 2);
    let tentative: Vec<bool> = found
        .targets
        .iter()
        .map(|target| target.tentative)
        .collect();
    assert_eq!(tentative, [false, false, true, false]);
    assert_eq!(
        pairs(&node, &found),
        [
            "/etc/kubernetes/pki/etcd/healthcheck-client.crt",
            "/etc/kubernetes/pki/apiserver-etcd-client.crt",
            "/etc/kubernetes/pki/etcd/server.crt",
            "/etc/kubernetes/pki/etcd/peer.crt",
            "-",
        ]
    );
    assert_eq!(found.notes, []);
}

#[test]
fn first_member_has_no_peers() {
    let node = Node::new().put("/etc/kubernetes/manifests/etcd.yaml", FIRST_ETCD_MANIFEST);
    assert_eq!(
        targets(&node, &node.discover().unwrap()),
        ["etcd-client 10.77.0.11:2379 /etc/kubernetes/manifests/etcd.yaml"]
    );
}

#[test]
fn external_etcd() {
    let cluster = "---\napiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\netcd:\n  external:\n    \
                   endpoints:\n    - https://10.0.1.1:2379\n    - https://[fd00::2]:2379\n    \
                   caFile: /etc/kubernetes/pki/etcd/ca.crt\n    \
                   certFile: /etc/kubernetes/pki/apiserver-etcd-client.crt\n    \
                   keyFile: /etc/kubernetes/pki/apiserver-etcd-client.key\n";
    let node = Node::new()
        .touch("/etc/kubernetes/pki", &["etcd/ca.crt"])
        .touch("/etc/kubernetes/pki", &AFTER_JOIN[..2])
        .put(JOIN, join_config("v1beta3", "controlPlane: {}\n") + cluster);
    let found = node.discover().unwrap();
    assert_eq!(
        targets(&node, &found),
        [
            format!("apiserver api.example:6443 {JOIN}"),
            format!("etcd-client 10.0.1.1:2379 {JOIN}"),
            format!("etcd-client [fd00::2]:2379 {JOIN}"),
        ]
    );
    assert!(found.external_etcd.is_some());
    assert_eq!(
        pairs(&node, &found),
        ["/etc/kubernetes/pki/apiserver-etcd-client.crt", "-"]
    );
}

#[test]
fn etcd_servers_of_the_manifest_are_external_without_a_member_here() {
    let manifest = APISERVER_MANIFEST.replace(
        "--etcd-servers=https://127.0.0.1:2379",
        "--etcd-servers=https://10.0.1.1:2379,https://10.0.1.2:2379",
    );
    let node = Node::new().put("/etc/kubernetes/manifests/kube-apiserver.yaml", manifest);
    let found = node.discover().unwrap();
    assert_eq!(found.targets.len(), 3);
    assert!(found.external_etcd.is_some());
    // The files that the manifest names are not there: said, not fatal.
    assert_eq!(found.notes.len(), 1, "{:?}", found.notes);
}

#[test]
fn discovery_by_file() {
    let join = "apiVersion: kubeadm.k8s.io/v1beta3\nkind: JoinConfiguration\ndiscovery:\n  file:\n    \
                kubeConfigPath: /etc/kubernetes/discovery.conf\n";
    let discovery = "apiVersion: v1\nkind: Config\nclusters:\n- name: \"\"\n  cluster:\n    \
                     server: https://[fd00::1]:6443\n    certificate-authority: pki/../cluster.crt\n";
    let node = Node::new()
        .put(JOIN, join)
        .put("/etc/kubernetes/discovery.conf", discovery);
    let found = node.discover().unwrap();
    assert_eq!(
        targets(&node, &found),
        ["apiserver [fd00::1]:6443 /etc/kubernetes/discovery.conf"]
    );
    assert!(
        matches!(&found.api_trust.cas[0].value, Pem::File(path) if path == Path::new("/etc/kubernetes/cluster.crt"))
    );
}

#[test]
fn nothing_is_there() {
    let node = Node::new();
    let found = node.discover().unwrap();
    assert_eq!(found.node, NodeKind::Unknown);
    assert!(found.targets.is_empty() && found.notes.is_empty());
    assert!(found.absent.contains(&node.path(JOIN)));
}

#[test]
fn links_stay_below_the_root() {
    let node = Node::new()
        .put("/real/etcd/ca.crt", "")
        .put("/real/ca.crt", "")
        .put("/etc/kubernetes/x", "");
    // An absolute link, as kubelet-client-current.pem is.
    std::os::unix::fs::symlink("/real", node.path("/etc/kubernetes/pki")).unwrap();
    let found = node.discover().unwrap();
    let real = std::fs::canonicalize(node.path("/real/etcd/ca.crt")).unwrap();
    assert_eq!(found.etcd_credentials[0].ca, real);
}
