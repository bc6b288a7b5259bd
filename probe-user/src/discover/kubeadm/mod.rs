//! kubeadm's configuration: v1beta2, v1beta3, v1beta4, and whatever later versions keep of them.

mod cluster;
mod join;

pub(super) use cluster::ClusterConfig;
use cluster::cluster_config;
use join::join_config;
pub(super) use join::{JoinConfig, JoinDiscovery};

use super::error::DiscoverError;
use super::root::Text;
use super::yaml::Documents;

/// The group of kubeadm's kinds, whatever the version.
const GROUP: &str = "kubeadm.k8s.io/";

/// What one of kubeadm's files holds.
#[derive(Default)]
pub(super) struct KubeadmFile {
    pub(super) join: Option<JoinConfig>,
    pub(super) cluster: Option<ClusterConfig>,
}

/// Reads every document of one of kubeadm's files that joinprobe has a use for.
///
/// # Errors
/// The file is not YAML, a document has no kind, or a field that is needed is not what it should be.
pub(super) fn read(text: &Text) -> Result<KubeadmFile, DiscoverError> {
    let documents = Documents::parse(text)?;
    let mut file = KubeadmFile::default();
    let mut kinds = 0;
    for top in documents.iter() {
        let version = top.get("apiVersion")?.text()?.unwrap_or_default();
        let kind = top.get("kind")?;
        kinds += usize::from(kind.exists());
        if !version.starts_with(GROUP) {
            continue;
        }
        match kind.text()? {
            Some("JoinConfiguration") if file.join.is_some() => {
                return Err(kind.refuse("it is the second JoinConfiguration in the file"));
            }
            Some("JoinConfiguration") => file.join = Some(join_config(&top)?),
            Some("ClusterConfiguration") => file.cluster = Some(cluster_config(&top)?),
            _ => {}
        }
    }
    if kinds == 0 {
        return Err(DiscoverError::unusable(
            text.source.kind,
            &text.source.path,
            "none of its documents has a kind, as every one of kubeadm's has",
        ));
    }
    Ok(file)
}
