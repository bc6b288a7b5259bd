//! The cluster's etcd members as kubeadm finds them: by an annotation on their static pods.

use tokio::time::Instant;

use super::api::{ApiServer, OnlineError};
use crate::discover::endpoint::{Scheme, endpoint};
use crate::discover::error::{DiscoverError, Kind};
use crate::discover::origin::{Found, Origin};
use crate::discover::root::Text;
use crate::discover::secret::Secret;
use crate::discover::yaml::{Documents, Field};
use crate::target::{Role, TargetSpec};
use crate::tls::ClientTls;

/// kubeadm's own selector.
const PATH: &str =
    "/api/v1/namespaces/kube-system/pods?labelSelector=component%3Detcd%2Ctier%3Dcontrol-plane";

/// kubeadm's annotation.
const ANNOTATION: &str = "kubeadm.kubernetes.io/etcd.advertise-client-urls";

/// An etcd member's pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdPod {
    /// Its name.
    pub name: String,
    /// Its client addresses.
    pub clients: Vec<Found<TargetSpec>>,
}

/// The members' pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EtcdPods {
    /// Those with an address.
    pub pods: Vec<EtcdPod>,
    /// What is odd about others; one sentence each.
    pub warnings: Vec<String>,
}

/// Lists the etcd pods of kube-system: one read-only request.
///
/// # Errors
/// `tls` verifies nobody, or the server cannot be asked, refuses, or answers something else.
pub async fn etcd_pods(
    server: &ApiServer,
    tls: &ClientTls,
    bearer: Option<&Secret>,
    deadline: Instant,
) -> Result<EtcdPods, OnlineError> {
    let name = &server.spec;
    if tls.ca().is_none() {
        return Err(OnlineError(format!(
            "{name} cannot be verified, so no credentials are sent to list the etcd pods: give its CA with \
             --apiserver-ca"
        )));
    }
    let answer = server.get(PATH, tls, bearer, deadline).await?;
    match answer.status {
        200 => {}
        401 => {
            return Err(OnlineError(format!(
                "{name} does not accept the credentials for listing the etcd pods (HTTP 401): they have expired, or \
                 are of another cluster"
            )));
        }
        403 => {
            return Err(OnlineError(format!(
                "{name} does not let these credentials list the pods of kube-system (HTTP 403): use a kubeconfig that may"
            )));
        }
        status => {
            return Err(OnlineError(format!(
                "{name} answered HTTP {status} to listing the etcd pods"
            )));
        }
    }
    parse(&name.to_string(), &String::from_utf8_lossy(&answer.body))
        .map_err(|error| OnlineError(error.to_string()))
}

fn parse(server: &str, body: &str) -> Result<EtcdPods, DiscoverError> {
    let text = Text::new(
        Kind::Answer,
        &format!("list of etcd pods of {server}"),
        body,
    );
    let documents = Documents::parse(&text)?;
    let mut found = EtcdPods::default();
    for pod in documents.first()?.get("items")?.items()? {
        let name = pod
            .at(&["metadata", "name"])?
            .text()?
            .unwrap_or("without a name")
            .to_owned();
        let annotation = pod.at(&["metadata", "annotations", ANNOTATION])?;
        let clients = clients(&name, &annotation)?;
        if clients.is_empty() {
            found.warnings.push(format!(
                "the etcd pod {name} lacks the annotation {ANNOTATION}, so its address is not known"
            ));
        } else {
            found.pods.push(EtcdPod { name, clients });
        }
    }
    Ok(found)
}

fn clients(pod: &str, annotation: &Field<'_>) -> Result<Vec<Found<TargetSpec>>, DiscoverError> {
    let mut clients = Vec::new();
    let urls = annotation.text()?.unwrap_or_default();
    for url in urls.split(',').map(str::trim).filter(|url| !url.is_empty()) {
        let endpoint =
            endpoint(Role::EtcdClient, url, None).map_err(|reason| annotation.refuse(reason))?;
        if endpoint.scheme == Scheme::Tls {
            let origin = Origin::Cluster(format!("pod kube-system/{pod}"));
            clients.push(Found::new(endpoint.spec, origin));
        }
    }
    Ok(clients)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, urls: &str) -> serde_json::Value {
        serde_json::json!({
            "metadata": {"name": name, "annotations": {ANNOTATION: urls}},
            "status": {"phase": "Running"},
        })
    }

    fn list(items: &[serde_json::Value]) -> String {
        serde_json::json!({"kind": "PodList", "apiVersion": "v1", "items": items}).to_string()
    }

    #[test]
    fn takes_every_address() {
        let body = list(&[
            pod("etcd-cp-1", "https://10.1.0.1:2379"),
            pod("etcd-cp-2", "https://10.1.0.2:2379,https://[fd00::2]:2379"),
        ]);
        let found = parse("api:6443", &body).unwrap();
        let addresses: Vec<String> = found
            .pods
            .iter()
            .flat_map(|pod| pod.clients.iter())
            .map(|client| format!("{} {}", client.value, client.origin))
            .collect();
        assert_eq!(
            addresses,
            [
                "10.1.0.1:2379 pod kube-system/etcd-cp-1",
                "10.1.0.2:2379 pod kube-system/etcd-cp-2",
                "[fd00::2]:2379 pod kube-system/etcd-cp-2",
            ]
        );
        assert!(found.warnings.is_empty());
    }

    #[test]
    fn says_what_is_odd() {
        let body = list(&[pod("etcd-cp-1", "")]);
        assert!(parse("api:6443", &body).unwrap().warnings[0].contains("etcd-cp-1"));
        assert!(parse("api:6443", &list(&[])).unwrap().pods.is_empty());
        for wrong in ["", "{", "[]", "<html>", "{\"items\": 3}"] {
            let error = parse("api:6443", wrong).unwrap_err().to_string();
            assert!(error.contains("list of etcd pods of api:6443"), "{error}");
        }
        let body = list(&[pod("etcd-cp-1", "https://10.1.0.1")]);
        assert!(
            parse("api:6443", &body)
                .unwrap_err()
                .to_string()
                .contains("port is missing")
        );
    }
}
