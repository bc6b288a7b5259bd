//! cluster-info as kubeadm makes it, and false ones.

use std::fs;
use std::path::Path;

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use joinprobe_lab::apiserver::Answer;
use joinprobe_lab::{Lab, etcd::CLIENT_PORT};
use ring::hmac;

use super::node::TOKEN_SECRET;

pub(crate) const PATH: &str = "/api/v1/namespaces/kube-public/configmaps/cluster-info";
pub(crate) const PODS: &str = "/api/v1/namespaces/kube-system/pods";

pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Names this CA and is signed with the token of the join configurations.
pub(crate) fn cluster_info(ca: &Path) -> Result<Answer> {
    let kubeconfig = format!(
        "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {}\n    \
         server: https://api.example:6443\n  name: \"\"\ncontexts: null\ncurrent-context: \"\"\nkind: Config\n\
         preferences: {{}}\nusers: null\n",
        base64(&fs::read(ca)?)
    );
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","kid":"abcdef"}"#);
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(&kubeconfig));
    let key = hmac::Key::new(hmac::HMAC_SHA256, TOKEN_SECRET.as_bytes());
    let tag = URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes()));
    Ok(Answer::json(
        200,
        &serde_json::json!({
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": "cluster-info", "namespace": "kube-public"},
            "data": {"kubeconfig": kubeconfig, "jws-kubeconfig-abcdef": format!("{header}..{tag}")},
        }),
    ))
}

/// The list of etcd's static pods.
pub(crate) fn etcd_pods(lab: &Lab) -> Answer {
    let pods: Vec<_> = lab
        .member_nodes
        .iter()
        .map(|node| {
            serde_json::json!({
                "metadata": {
                    "name": format!("etcd-{}", node.name),
                    "namespace": "kube-system",
                    "labels": {"component": "etcd", "tier": "control-plane"},
                    "annotations": {
                        "kubeadm.kubernetes.io/etcd.advertise-client-urls":
                            format!("https://{}", node.at(CLIENT_PORT)),
                    },
                },
                "status": {"phase": "Running"},
            })
        })
        .collect();
    Answer::json(
        200,
        &serde_json::json!({"kind": "PodList", "apiVersion": "v1", "items": pods}),
    )
}
