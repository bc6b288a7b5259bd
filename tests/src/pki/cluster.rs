//! The certificates of one cluster, laid out as under /etc/kubernetes/pki.

use std::net::IpAddr;
use std::path::Path;

use anyhow::Result;

use super::authority::{Authority, Leaf, Pair, Usage, Validity};

/// A host that gets certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its host name.
    pub name: String,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

/// The two authorities of a cluster and the client certificates that every control-plane node has.
#[derive(Debug)]
pub struct ClusterPki {
    /// Signs the API server and its clients: `ca.crt`.
    pub kubernetes: Authority,
    /// Signs etcd's servers, peers and clients: `etcd/ca.crt`.
    pub etcd: Authority,
    /// `etcd/healthcheck-client`: what kubeadm's liveness probe uses.
    pub healthcheck_client: Pair,
    /// `apiserver-etcd-client`: what the API server uses.
    pub apiserver_etcd_client: Pair,
    folder: std::path::PathBuf,
}

impl ClusterPki {
    /// Makes both authorities and the client certificates in `folder`.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn create(folder: &Path) -> Result<Self> {
        let kubernetes = Authority::create(folder, "kubernetes")?;
        let etcd = Authority::create(&folder.join("etcd"), "etcd-ca")?;
        let healthcheck = client("kube-etcd-healthcheck-client", Validity::Now);
        let healthcheck_client =
            etcd.issue(&folder.join("etcd"), "healthcheck-client", &healthcheck)?;
        let apiserver = client("kube-apiserver-etcd-client", Validity::Now);
        let apiserver_etcd_client = etcd.issue(folder, "apiserver-etcd-client", &apiserver)?;
        Ok(Self {
            kubernetes,
            etcd,
            healthcheck_client,
            apiserver_etcd_client,
            folder: folder.to_owned(),
        })
    }

    /// The serving certificate of an etcd member, `etcd/server` in a folder of its own.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn etcd_server(&self, member: &Identity) -> Result<Pair> {
        self.etcd_member(member, "server")
    }

    /// The peer certificate of an etcd member, `etcd/peer` in the same folder.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn etcd_peer(&self, member: &Identity) -> Result<Pair> {
        self.etcd_member(member, "peer")
    }

    /// The API server's serving certificate, with the names kubeadm puts in.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn apiserver(&self, server: &Identity) -> Result<Pair> {
        let mut names = reachable_as(server);
        names.extend(
            ["kubernetes", "kubernetes.default", "kubernetes.default.svc"].map(str::to_owned),
        );
        names.extend(["kubernetes.default.svc.cluster.local", "10.96.0.1"].map(str::to_owned));
        let leaf = Leaf {
            common_name: "kube-apiserver",
            organisation: None,
            names,
            usage: Usage::Server,
            validity: Validity::Now,
        };
        self.kubernetes
            .issue(&self.folder.join(&server.name), "apiserver", &leaf)
    }

    /// An etcd client certificate that is not valid now.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn etcd_client(&self, name: &str, validity: Validity) -> Result<Pair> {
        self.etcd
            .issue(&self.folder.join("clients"), name, &client(name, validity))
    }

    /// A client certificate that another, unknown authority signed; its CA is beside it as `ca.crt`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn foreign(&self) -> Result<(Authority, Pair)> {
        let folder = self.folder.join("foreign");
        let authority = Authority::create(&folder, "another-ca")?;
        let pair = authority.issue(
            &folder,
            "client",
            &client("kube-etcd-healthcheck-client", Validity::Now),
        )?;
        Ok((authority, pair))
    }

    /// The healthcheck client's certificate beside the key of another.
    #[must_use]
    pub fn mismatched_client(&self) -> Pair {
        Pair {
            cert: self.healthcheck_client.cert.clone(),
            key: self.apiserver_etcd_client.key.clone(),
        }
    }

    fn etcd_member(&self, member: &Identity, role: &str) -> Result<Pair> {
        let leaf = Leaf {
            common_name: &member.name,
            organisation: None,
            names: reachable_as(member),
            usage: Usage::Both,
            validity: Validity::Now,
        };
        self.etcd
            .issue(&self.folder.join(&member.name).join("etcd"), role, &leaf)
    }
}

fn client(common_name: &str, validity: Validity) -> Leaf<'_> {
    Leaf {
        common_name,
        organisation: Some("system:masters"),
        names: Vec::new(),
        usage: Usage::Client,
        validity,
    }
}

fn reachable_as(host: &Identity) -> Vec<String> {
    let mut names = vec![
        host.name.clone(),
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "::1".to_owned(),
    ];
    names.extend(host.addresses.iter().map(ToString::to_string));
    names
}
