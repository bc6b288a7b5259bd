//! Puts together what each source says.

use std::path::{Path, PathBuf};

use super::discovery::{ApiTrust, Discovery, FoundTarget, NodeKind, Note};
use super::endpoint::{Endpoint, Scheme};
use super::error::{DiscoverError, Kind};
use super::kubeadm::{self, ClusterConfig, JoinConfig, JoinDiscovery};
use super::kubeconfig::{self, Kubeconfig};
use super::manifest::{self, ApiServerManifest, EtcdManifest};
use super::origin::Found;
use super::root::{Root, Text};
use super::timing::RaftTiming;
use super::{Hints, credentials};
use crate::target::TargetSpec;

/// Where Cluster API puts the join configuration: cloud-init, then Ignition.
const JOIN_CONFIGS: [&str; 2] = ["/run/kubeadm/kubeadm-join-config.yaml", "/etc/kubeadm.yml"];
/// Where Cluster API puts the configuration of a cluster's first node.
const INIT_CONFIG: &str = "/run/kubeadm/kubeadm.yaml";
const KUBECONFIGS: [&str; 3] = [
    "/etc/kubernetes/admin.conf",
    "/etc/kubernetes/kubelet.conf",
    "/etc/kubernetes/bootstrap-kubelet.conf",
];
const ETCD_MANIFEST: &str = "/etc/kubernetes/manifests/etcd.yaml";
const APISERVER_MANIFEST: &str = "/etc/kubernetes/manifests/kube-apiserver.yaml";

/// A discovery under way.
pub(super) struct Assembly<'a> {
    pub(super) root: &'a Root,
    pub(super) found: Discovery,
}

impl<'a> Assembly<'a> {
    pub(super) fn new(root: &'a Root) -> Self {
        Self {
            root,
            found: Discovery::default(),
        }
    }

    /// Looks through everything, in order of precedence.
    ///
    /// # Errors
    /// A file that was named, or that `kubeadm join` itself would stumble over, is no good.
    pub(super) fn run(mut self, hints: &Hints) -> Result<Discovery, DiscoverError> {
        let (join, cluster) = self.kubeadm(hints)?;
        if let Some(join) = join {
            self.take_join(join)?;
        }
        let certificates = self.take_cluster(cluster.unwrap_or_default());
        self.kubeconfigs(hints)?;
        let etcd = self.tolerated(Kind::Manifest, ETCD_MANIFEST, manifest::etcd);
        let apiserver = self.tolerated(Kind::Manifest, APISERVER_MANIFEST, manifest::apiserver);
        self.take_manifests(etcd.as_ref(), apiserver.as_ref());
        credentials::collect(&mut self, &certificates, etcd.as_ref(), apiserver.as_ref());
        Ok(self.found)
    }

    /// Looks for etcd's timing and nothing else.
    pub(super) fn timing(mut self, hints: &Hints) -> RaftTiming {
        let cluster = match self.kubeadm(hints) {
            Ok((_, cluster)) => cluster.unwrap_or_default(),
            Err(error) => {
                self.note(true, error.to_string());
                ClusterConfig::default()
            }
        };
        let etcd = self.tolerated(Kind::Manifest, ETCD_MANIFEST, manifest::etcd);
        let (heartbeat, election) = etcd
            .map(|etcd| (etcd.heartbeat, etcd.election))
            .unwrap_or_default();
        RaftTiming {
            heartbeat: heartbeat.or(cluster.heartbeat),
            election: election.or(cluster.election),
            notes: self.found.notes,
        }
    }

    /// Reads a file, and remembers where there was none.
    fn read(&mut self, kind: Kind, path: &Path) -> Result<Option<Text>, DiscoverError> {
        let text = self.root.read(kind, path)?;
        if text.is_none() {
            self.found.absent.push(self.root.shown(path));
        }
        Ok(text)
    }

    /// Reads a file that somebody named, so it has to be there.
    fn required(&mut self, kind: Kind, path: &Path) -> Result<Text, DiscoverError> {
        self.root
            .read(kind, path)?
            .ok_or_else(|| DiscoverError::Unreadable {
                kind,
                path: self.root.shown(path),
                source: std::io::ErrorKind::NotFound.into(),
            })
    }

    /// Reads a file that may be there by convention; one that is no good becomes a note.
    fn tolerated<T>(
        &mut self,
        kind: Kind,
        path: &str,
        parse: impl FnOnce(&Text) -> Result<T, DiscoverError>,
    ) -> Option<T> {
        let read = self.read(kind, Path::new(path));
        match read.and_then(|text| text.as_ref().map(parse).transpose()) {
            Ok(value) => value,
            Err(error) => {
                self.note(true, error.to_string());
                None
            }
        }
    }

    pub(super) fn note(&mut self, warns: bool, text: impl Into<String>) {
        self.found.notes.push(Note {
            warns,
            text: text.into(),
        });
    }

    fn kubeadm(
        &mut self,
        hints: &Hints,
    ) -> Result<(Option<JoinConfig>, Option<ClusterConfig>), DiscoverError> {
        if let Some(path) = &hints.join_config {
            let text = self.required(Kind::JoinConfig, path)?;
            let file = kubeadm::read(&text)?;
            if file.join.is_none() && file.cluster.is_none() {
                return Err(DiscoverError::unusable(
                    Kind::JoinConfig,
                    &text.source.path,
                    "it holds neither a JoinConfiguration nor a ClusterConfiguration",
                ));
            }
            return Ok((file.join, file.cluster));
        }
        let mut join = None;
        let mut cluster = None;
        for path in JOIN_CONFIGS {
            if let Some(text) = self.read(Kind::JoinConfig, Path::new(path))? {
                let file = kubeadm::read(&text)?;
                (join, cluster) = (file.join, file.cluster);
                if join.is_some() {
                    break;
                }
            }
        }
        if cluster.is_none() {
            cluster = self
                .tolerated(Kind::ClusterConfig, INIT_CONFIG, kubeadm::read)
                .and_then(|file| file.cluster);
        }
        Ok((join, cluster))
    }

    fn take_join(&mut self, join: JoinConfig) -> Result<(), DiscoverError> {
        self.found.node = if join.control_plane {
            NodeKind::JoiningControlPlane
        } else {
            NodeKind::JoiningWorker
        };
        self.found.node_origin = Some(join.origin);
        match join.discovery {
            JoinDiscovery::Token {
                endpoint,
                token,
                pins,
                skips_verification,
            } => {
                self.add(endpoint.clone(), false, None);
                self.found.api_trust = ApiTrust {
                    cas: Vec::new(),
                    pins,
                    token: token.map(|token| Found::new(token, endpoint.origin.clone())),
                    skips_verification: skips_verification.then(|| endpoint.origin.clone()),
                    endpoint: Some(endpoint),
                };
            }
            JoinDiscovery::File(file) => {
                let text = self.required(Kind::Kubeconfig, &file.value)?;
                let kubeconfig = kubeconfig::read(&text)?;
                self.take_kubeconfig(kubeconfig);
            }
            JoinDiscovery::Url(origin) => self.note(
                true,
                format!(
                    "{origin} is a URL, which joinprobe does not fetch: name the API server with --apiserver and its \
                     CA with --apiserver-ca"
                ),
            ),
            JoinDiscovery::None => {}
        }
        if let Some(ca) = join.ca_certificate {
            credentials::cluster_ca(self, &ca.value, ca.origin);
        }
        Ok(())
    }

    /// Returns the directory of the cluster's certificates.
    fn take_cluster(&mut self, cluster: ClusterConfig) -> PathBuf {
        if let Some(endpoint) = cluster.endpoint {
            self.add(endpoint, false, None);
        }
        if let Some(external) = cluster.external_etcd {
            for endpoint in external.endpoints {
                self.add_endpoint(endpoint, false);
            }
            credentials::etcd(self, external.ca, external.pair, external.origin.clone());
            self.found.external_etcd = Some(external.origin);
        }
        self.found.heartbeat = cluster.heartbeat;
        self.found.election = cluster.election;
        cluster
            .certificates
            .unwrap_or_else(|| PathBuf::from("/etc/kubernetes/pki"))
    }

    fn kubeconfigs(&mut self, hints: &Hints) -> Result<(), DiscoverError> {
        if let Some(path) = &hints.kubeconfig {
            let text = self.required(Kind::Kubeconfig, path)?;
            let kubeconfig = kubeconfig::read(&text)?;
            self.take_kubeconfig(kubeconfig);
            return Ok(());
        }
        for path in KUBECONFIGS {
            if let Some(kubeconfig) = self.tolerated(Kind::Kubeconfig, path, kubeconfig::read) {
                self.take_kubeconfig(kubeconfig);
            }
        }
        Ok(())
    }

    fn take_kubeconfig(&mut self, kubeconfig: Kubeconfig) {
        let origin = &kubeconfig.origin;
        if kubeconfig.has_proxy {
            self.note(
                false,
                format!("{origin} asks for a proxy; joinprobe dials the API server directly"),
            );
        }
        self.add(
            kubeconfig.server.clone(),
            false,
            kubeconfig.server_name.clone(),
        );
        self.found.api_trust.cas.extend(kubeconfig.ca.clone());
        self.found.kubeconfigs.push(kubeconfig);
    }

    fn take_manifests(
        &mut self,
        etcd: Option<&EtcdManifest>,
        apiserver: Option<&ApiServerManifest>,
    ) {
        let running = apiserver
            .map(|manifest| &manifest.origin)
            .or(etcd.map(|manifest| &manifest.origin));
        if let Some(origin) = running {
            self.found.node = NodeKind::ControlPlane;
            self.found.node_origin = Some(origin.clone());
        } else if self.found.node == NodeKind::Unknown
            && let Some(kubeconfig) = self.found.kubeconfigs.first()
        {
            self.found.node = NodeKind::Worker;
            self.found.node_origin = Some(kubeconfig.origin.clone());
        }
        if let Some(etcd) = etcd {
            for endpoint in &etcd.clients {
                self.add_endpoint(endpoint.clone(), false);
            }
            for endpoint in &etcd.peers {
                self.add_endpoint(endpoint.clone(), true);
            }
            self.found.heartbeat = etcd.heartbeat.clone().or(self.found.heartbeat.take());
            self.found.election = etcd.election.clone().or(self.found.election.take());
        }
        if let Some(apiserver) = apiserver {
            let external = apiserver
                .etcd
                .iter()
                .find(|endpoint| !endpoint.value.is_loopback() && etcd.is_none());
            if let Some(endpoint) = external {
                self.found.external_etcd = Some(endpoint.origin.clone());
            }
            for endpoint in &apiserver.etcd {
                // The local member is measured at the address it announces.
                if etcd.is_none() || !endpoint.value.is_loopback() {
                    self.add_endpoint(endpoint.clone(), false);
                }
            }
            if let Some(advertised) = &apiserver.advertised {
                self.add(advertised.clone(), false, None);
            }
        }
    }

    fn add_endpoint(&mut self, endpoint: Found<Endpoint>, tentative: bool) {
        if endpoint.value.scheme == Scheme::Tls {
            self.add(
                Found::new(endpoint.value.spec, endpoint.origin),
                tentative,
                None,
            );
        } else {
            let text = format!(
                "{} in {} speaks plain HTTP; joinprobe measures TLS endpoints only",
                endpoint.value.spec, endpoint.origin
            );
            self.note(true, text);
        }
    }

    fn add(&mut self, target: Found<TargetSpec>, tentative: bool, server_name: Option<String>) {
        let known = self
            .found
            .targets
            .iter_mut()
            .find(|known| known.spec == target.value);
        if let Some(known) = known {
            known.tentative &= tentative;
            if !known.origins.contains(&target.origin) {
                known.origins.push(target.origin);
            }
            return;
        }
        self.found.targets.push(FoundTarget {
            spec: target.value,
            origins: vec![target.origin],
            tentative,
            server_name,
        });
    }
}
