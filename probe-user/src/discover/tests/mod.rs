//! Nodes laid out as kubeadm and Cluster API leave them, and what can be wrong with them.

mod layouts;
mod malformed;
mod no_text;
mod versions;

use std::path::{Path, PathBuf};

use super::{DiscoverError, Discovery, Hints, Root, discover};

/// The token of every test: its second half must not show anywhere.
const TOKEN: &str = "abcdef.s3cr3ts3cr3ts3cr";
const TOKEN_SECRET: &str = "s3cr3ts3cr3ts3cr";
const HASH: &str = "sha256:d2cb7b0f9b6dd9a2cbbcbd4a16d8a3a0c6bb8ed6e2b3e5e3c7f3d9e50a13ab11";
const JOIN: &str = "/run/kubeadm/kubeadm-join-config.yaml";

const ETCD_MANIFEST: &str = include_str!("../../../tests/fixtures/kubeadm-1.20/etcd.yaml");
const FIRST_ETCD_MANIFEST: &str =
    include_str!("../../../tests/fixtures/kubeadm-1.20/etcd-first-member.yaml");
const APISERVER_MANIFEST: &str =
    include_str!("../../../tests/fixtures/kubeadm-1.20/kube-apiserver.yaml");

/// A filesystem of its own.
struct Node(tempfile::TempDir);

impl Node {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path.trim_start_matches('/'))
    }

    fn put(self, path: &str, contents: impl AsRef<[u8]>) -> Self {
        let real = self.path(path);
        std::fs::create_dir_all(real.parent().unwrap()).unwrap();
        std::fs::write(real, contents).unwrap();
        self
    }

    /// Empty files: which ones are there is what counts.
    fn touch(self, directory: &str, names: &[&str]) -> Self {
        names.iter().fold(self, |node, name| {
            node.put(&format!("{directory}/{name}"), "")
        })
    }

    fn root(&self) -> Root {
        Root::at(self.0.path())
    }

    fn discover(&self) -> Result<Discovery, DiscoverError> {
        discover(&self.root(), &Hints::default())
    }

    fn discover_with(&self, join_config: &str) -> Result<Discovery, DiscoverError> {
        let hints = Hints {
            join_config: Some(PathBuf::from(join_config)),
            kubeconfig: None,
        };
        discover(&self.root(), &hints)
    }

    /// A path without the temporary directory in front.
    fn inside(&self, path: &Path) -> String {
        format!("/{}", path.strip_prefix(self.0.path()).unwrap().display())
    }
}

/// Role, address and file of each target.
fn targets(node: &Node, found: &Discovery) -> Vec<String> {
    use crate::target::RoleName;
    found
        .targets
        .iter()
        .map(|target| {
            format!(
                "{} {} {}",
                target.spec.role.name(),
                target.spec,
                node.inside(target.origins[0].path().unwrap())
            )
        })
        .collect()
}

fn join_config(version: &str, control_plane: &str) -> String {
    format!(
        "apiVersion: kubeadm.k8s.io/{version}\nkind: JoinConfiguration\ndiscovery:\n  bootstrapToken:\n    \
         apiServerEndpoint: api.example:6443\n    token: {TOKEN}\n    caCertHashes:\n    - {HASH}\n{control_plane}"
    )
}

fn kubeconfig(server: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster:\n    server: {server}\n    \
         certificate-authority-data: LS0tLS1CRUdJTg==\ncontexts:\n- name: x\n  context: {{cluster: c, user: u}}\n\
         current-context: x\nusers:\n- name: u\n  user:\n    {user}\n"
    )
}
