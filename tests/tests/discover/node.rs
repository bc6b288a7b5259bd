//! The files of a node, in a folder of their own.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use joinprobe_lab::Lab;
use joinprobe_lab::lab::{APISERVER_PORT, Finished};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::cluster_info;

pub(crate) const TOKEN: &str = "abcdef.s3cr3ts3cr3ts3cr";
pub(crate) const TOKEN_SECRET: &str = "s3cr3ts3cr3ts3cr";
pub(crate) const CERTIFICATE_KEY: &str =
    "5ec5ec5ec5ec5ec5ec5ec5ec5ec5ec5ec5ec5ec5ec5ec5ec5ec5ec5ec5ec5ec5";
pub(crate) const JOIN: &str = "run/kubeadm/kubeadm-join-config.yaml";

pub(crate) struct Node<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) root: PathBuf,
}

impl<'a> Node<'a> {
    pub(crate) fn new(lab: &'a Lab, name: &str) -> Result<Self> {
        let root = lab.folder().join(name);
        fs::create_dir_all(&root)?;
        Ok(Self { lab, root })
    }

    pub(crate) fn put(self, path: &str, contents: impl AsRef<[u8]>) -> Result<Self> {
        let real = self.root.join(path);
        fs::create_dir_all(real.parent().context("no folder")?)?;
        fs::write(real, contents)?;
        Ok(self)
    }

    pub(crate) fn copy(self, from: &Path, to: &str) -> Result<Self> {
        let contents = fs::read(from)?;
        self.put(to, contents)
    }

    /// The CA pairs that Cluster API puts on a control-plane node.
    pub(crate) fn with_authorities(self) -> Result<Self> {
        let pki = &self.lab.pki;
        let (kubernetes, etcd) = (&pki.kubernetes.pair, &pki.etcd.pair);
        self.copy(&kubernetes.cert, "etc/kubernetes/pki/ca.crt")?
            .copy(&kubernetes.key, "etc/kubernetes/pki/ca.key")?
            .copy(&etcd.cert, "etc/kubernetes/pki/etcd/ca.crt")?
            .copy(&etcd.key, "etc/kubernetes/pki/etcd/ca.key")
    }

    /// What kubeadm issues during the join.
    pub(crate) fn with_client_certificate(self) -> Result<Self> {
        let pki = &self.lab.pki;
        let pair = &pki.healthcheck_client;
        self.copy(&pki.etcd.pair.cert, "etc/kubernetes/pki/etcd/ca.crt")?
            .copy(&pair.cert, "etc/kubernetes/pki/etcd/healthcheck-client.crt")?
            .copy(&pair.key, "etc/kubernetes/pki/etcd/healthcheck-client.key")
    }

    pub(crate) fn with_join_config(self, control_plane: bool) -> Result<Self> {
        let text = join_config(self.lab, control_plane)?;
        self.put(JOIN, text)
    }

    pub(crate) fn preflight(&self, more: &[&str]) -> Result<Finished> {
        let root = self.root.display().to_string();
        let fixed = ["preflight", "-o", "json", "-vv", "--root", &root];
        self.lab.run_joinprobe(fixed.iter().chain(more))
    }

    /// Every file below the root, with its contents.
    pub(crate) fn files(&self) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let contents = fs::read(&path)?;
                    files.insert(path, contents);
                }
            }
        }
        Ok(files)
    }
}

pub(crate) fn apiserver(lab: &Lab) -> String {
    lab.apiserver_node.at(APISERVER_PORT).to_string()
}

pub(crate) fn ca_hash(certificate: &Path) -> Result<String> {
    let der = CertificateDer::from_pem_file(certificate)?;
    let (_, parsed) = X509Certificate::from_der(&der)?;
    let digest = ring::digest::digest(&ring::digest::SHA256, parsed.public_key().raw);
    let mut hash = "sha256:".to_owned();
    for byte in digest.as_ref() {
        write!(hash, "{byte:02x}")?;
    }
    Ok(hash)
}

pub(crate) fn join_config(lab: &Lab, control_plane: bool) -> Result<String> {
    let section = if control_plane {
        format!("controlPlane:\n  localAPIEndpoint: {{}}\n  certificateKey: {CERTIFICATE_KEY}\n")
    } else {
        String::new()
    };
    Ok(format!(
        "apiVersion: kubeadm.k8s.io/v1beta3\nkind: JoinConfiguration\ndiscovery:\n  bootstrapToken:\n    \
         apiServerEndpoint: {}\n    caCertHashes:\n    - {}\n    token: {TOKEN}\nnodeRegistration: {{}}\n{section}",
        apiserver(lab),
        ca_hash(&lab.pki.kubernetes.pair.cert)?
    ))
}

pub(crate) fn kubeconfig(lab: &Lab, user: &str) -> Result<String> {
    let ca = cluster_info::base64(&fs::read(&lab.pki.kubernetes.pair.cert)?);
    Ok(format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster:\n    server: https://{}\n    \
         certificate-authority-data: {ca}\ncontexts:\n- name: x\n  context: {{cluster: c, user: u}}\n\
         current-context: x\nusers:\n- name: u\n  user: {user}\n",
        apiserver(lab)
    ))
}

/// A static pod manifest of a member, as kubeadm writes it.
pub(crate) fn etcd_manifest(own: &str, other_peers: &[String]) -> String {
    let mut cluster = vec![format!("own=https://{own}:2380")];
    cluster.extend(
        other_peers
            .iter()
            .enumerate()
            .map(|(index, peer)| format!("m{index}=https://{peer}")),
    );
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: etcd\nspec:\n  containers:\n  - name: etcd\n    command:\n    \
         - etcd\n    - --advertise-client-urls=https://{own}:2379\n    \
         - --initial-advertise-peer-urls=https://{own}:2380\n    - --initial-cluster={}\n    \
         - --heartbeat-interval=200\n    - --election-timeout=2000\n",
        cluster.join(",")
    )
}
