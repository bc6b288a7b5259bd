use std::time::Duration;

use super::*;
use crate::discover::NodeKind;

#[test]
fn every_version_and_later_ones() {
    for version in ["v1beta2", "v1beta3", "v1beta4", "v1", "v2alpha1"] {
        let later = "controlPlane:\n  localAPIEndpoint: {advertiseAddress: 10.0.0.9, bindPort: 6443}\n  \
                     certificateKey: 0123\n  somethingNew: [1, {a: b}]\nunknown: {deep: [true, 1.5, ~]}\n";
        let node = Node::new().put(JOIN, join_config(version, later));
        let found = node.discover().unwrap();
        assert_eq!(found.node, NodeKind::JoiningControlPlane, "{version}");
        assert_eq!(found.targets.len(), 1);
    }
}

#[test]
fn several_documents_in_any_order() {
    let text = format!(
        "# by cloud-init\n---\napiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n---\n---\n{}\n\
         ...\n---\napiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n",
        join_config("v1beta4", "")
    );
    let node = Node::new().put(JOIN, text);
    assert_eq!(node.discover().unwrap().node, NodeKind::JoiningWorker);
}

#[test]
fn json_is_read_too() {
    let text = format!(
        "{{\"apiVersion\":\"kubeadm.k8s.io/v1beta3\",\"kind\":\"JoinConfiguration\",\"controlPlane\":{{}},\"discovery\":\
         {{\"bootstrapToken\":{{\"token\":\"{TOKEN}\",\"apiServerEndpoint\":\"10.0.0.1:6443\",\
         \"unsafeSkipCAVerification\":true}}}}}}"
    );
    let found = Node::new().put(JOIN, text).discover().unwrap();
    assert!(found.api_trust.pins.is_none());
    assert!(found.api_trust.skips_verification.is_some());
}

#[test]
fn token_for_the_whole_bootstrap_stands_in() {
    let text = format!(
        "apiVersion: kubeadm.k8s.io/v1beta3\nkind: JoinConfiguration\ndiscovery:\n  tlsBootstrapToken: {TOKEN}\n  \
         bootstrapToken: {{apiServerEndpoint: '10.0.0.1:6443'}}\n"
    );
    let found = Node::new().put(JOIN, text).discover().unwrap();
    assert_eq!(
        found.api_trust.token.unwrap().value.secret().expose(),
        TOKEN_SECRET
    );
}

fn timing(found: &Discovery) -> (u128, u128) {
    let millis = |found: &Option<crate::discover::Found<Duration>>| {
        found.as_ref().map_or(0, |found| found.value.as_millis())
    };
    (millis(&found.heartbeat), millis(&found.election))
}

#[test]
fn timing_from_the_manifest_in_every_spelling() {
    let spelled = [
        "    - --heartbeat-interval=250\n    - --election-timeout=2500\n    image: x",
        "    - --heartbeat-interval\n    - \"250\"\n    - -election-timeout\n    - 2500\n    image: x",
        "    env:\n    - {name: ETCD_HEARTBEAT_INTERVAL, value: \"250\"}\n    \
         - {name: ETCD_ELECTION_TIMEOUT, value: \"2500\"}\n    image: x",
        "    args: [--heartbeat-interval=100, --heartbeat-interval=250, --election-timeout=2500]\n    image: x",
    ];
    for lines in spelled {
        let manifest = ETCD_MANIFEST.replace("    image: k8s.gcr.io/etcd:3.4.13-0", lines);
        let node = Node::new().put("/etc/kubernetes/manifests/etcd.yaml", manifest);
        let found = node.discover().unwrap();
        assert_eq!(timing(&found), (250, 2500), "{lines}: {:?}", found.notes);
    }
}

#[test]
fn timing_from_the_cluster_configuration() {
    for args in [
        "{heartbeat-interval: \"250\", election-timeout: '2500'}",
        "[{name: heartbeat-interval, value: '250'}, {name: election-timeout, value: '2500'}]",
    ] {
        let text = format!(
            "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\ncontrolPlaneEndpoint: api.example\n\
             etcd:\n  local:\n    extraArgs: {args}\n"
        );
        let node = Node::new().put("/run/kubeadm/kubeadm.yaml", text);
        let found = node.discover().unwrap();
        assert_eq!(timing(&found), (250, 2500), "{args}");
        assert_eq!(found.targets[0].spec.to_string(), "api.example:6443");
    }
}
