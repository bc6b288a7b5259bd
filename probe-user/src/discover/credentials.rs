//! The certificates and keys that kubeadm and Cluster API leave on a node.

use std::path::{Path, PathBuf};

use super::assemble::Assembly;
use super::discovery::{EtcdCredential, SignerFiles};
use super::kubeconfig::Pem;
use super::manifest::{ApiServerManifest, EtcdManifest};
use super::origin::{Found, Origin};

/// Client pairs below the certificate directory, best first: the one made for health checks, then the API server's own.
const ETCD_PAIRS: [&str; 2] = ["etcd/healthcheck-client", "apiserver-etcd-client"];
/// The member's own pairs, which kubeadm issues for both directions.
const ETCD_MEMBER_PAIRS: [&str; 2] = ["etcd/server", "etcd/peer"];

/// Looks below `certificates` and where the manifests point.
pub(super) fn collect(
    assembly: &mut Assembly<'_>,
    certificates: &Path,
    etcd_manifest: Option<&EtcdManifest>,
    apiserver: Option<&ApiServerManifest>,
) {
    let etcd_ca = certificates.join("etcd/ca.crt");
    by_convention(assembly, certificates, &etcd_ca, &ETCD_PAIRS);
    if let Some(manifest) = apiserver {
        etcd(
            assembly,
            manifest.etcd_ca.clone(),
            manifest.etcd_pair.clone(),
            manifest.origin.clone(),
        );
    }
    if let Some(manifest) = etcd_manifest {
        for pair in &manifest.pairs {
            etcd(
                assembly,
                manifest.ca.clone(),
                Some(pair.clone()),
                manifest.origin.clone(),
            );
        }
    }
    by_convention(assembly, certificates, &etcd_ca, &ETCD_MEMBER_PAIRS);
    // Without any pair the CA alone still verifies the members.
    if let Some(ca) = located(assembly, &etcd_ca) {
        push(
            assembly,
            ca,
            None,
            Origin::file(&assembly.root.shown(&etcd_ca)),
        );
    }
    let cluster_ca_path = certificates.join("ca.crt");
    let shown = assembly.root.shown(&cluster_ca_path);
    cluster_ca(assembly, &cluster_ca_path, Origin::file(&shown));
    assembly.found.etcd_signer = signer(assembly, &etcd_ca, &certificates.join("etcd/ca.key"));
    assembly.found.cluster_signer =
        signer(assembly, &cluster_ca_path, &certificates.join("ca.key"));
}

/// Adds the cluster's CA where it is on disk already.
pub(super) fn cluster_ca(assembly: &mut Assembly<'_>, path: &Path, origin: Origin) {
    if let Some(located) = located(assembly, path) {
        let cas = &mut assembly.found.api_trust.cas;
        let known = |ca: &Found<Pem>| matches!(&ca.value, Pem::File(file) if *file == located);
        if !cas.iter().any(known) {
            cas.push(Found::new(Pem::File(located), origin));
        }
    }
}

/// Adds what a file names. A file that is named and not there is worth a note.
pub(super) fn etcd(
    assembly: &mut Assembly<'_>,
    ca: Option<PathBuf>,
    pair: Option<(PathBuf, PathBuf)>,
    origin: Origin,
) {
    let Some(ca) = ca.and_then(|path| named(assembly, &path, &origin)) else {
        return;
    };
    let pair = pair.and_then(|(certificate, key)| {
        let certificate = named(assembly, &certificate, &origin);
        certificate.zip(named(assembly, &key, &origin))
    });
    push(assembly, ca, pair, origin);
}

fn by_convention(assembly: &mut Assembly<'_>, certificates: &Path, ca: &Path, names: &[&str]) {
    let Some(ca) = located(assembly, ca) else {
        return;
    };
    for name in names {
        let certificate = certificates.join(format!("{name}.crt"));
        let key = certificates.join(format!("{name}.key"));
        let origin = Origin::file(&assembly.root.shown(&certificate));
        if let Some(pair) = located(assembly, &certificate).zip(located(assembly, &key)) {
            push(assembly, ca.clone(), Some(pair), origin);
        }
    }
}

fn push(
    assembly: &mut Assembly<'_>,
    ca: PathBuf,
    pair: Option<(PathBuf, PathBuf)>,
    origin: Origin,
) {
    let credentials = &mut assembly.found.etcd_credentials;
    if !credentials
        .iter()
        .any(|known| known.ca == ca && known.pair == pair)
    {
        credentials.push(EtcdCredential { ca, pair, origin });
    }
}

fn signer(assembly: &Assembly<'_>, certificate: &Path, key: &Path) -> Option<SignerFiles> {
    Some(SignerFiles {
        certificate: located(assembly, certificate)?,
        key: located(assembly, key)?,
    })
}

fn located(assembly: &Assembly<'_>, path: &Path) -> Option<PathBuf> {
    assembly.root.locate(path).ok()
}

fn named(assembly: &mut Assembly<'_>, path: &Path, origin: &Origin) -> Option<PathBuf> {
    match assembly.root.locate(path) {
        Ok(located) => Some(located),
        Err(error) => {
            let shown = assembly.root.shown(path);
            let text = format!(
                "{origin} names {}, which cannot be used: {error}",
                shown.display()
            );
            assembly.note(true, text);
            None
        }
    }
}
