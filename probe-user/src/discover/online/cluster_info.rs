//! cluster-info: the ConfigMap that a joining node reads before it trusts anybody.

use std::path::PathBuf;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::signature;
use crate::discover::ca_hash::CaHash;
use crate::discover::error::{DiscoverError, Kind};
use crate::discover::kubeconfig::{self, Pem};
use crate::discover::root::Text;
use crate::discover::secret::BootstrapToken;
use crate::discover::yaml::Documents;

/// Where it is.
pub(super) const PATH: &str = "/api/v1/namespaces/kube-public/configmaps/cluster-info";

/// What it says, and how far the token bears it out.
pub(super) struct ClusterInfo {
    certificates: Vec<CertificateDer<'static>>,
    pub(super) signed: Signed,
}

/// Whether cluster-info bears the token's signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signed {
    /// No token to check with.
    NoToken,
    /// There is none for this token: it has expired or was never made. `kubeadm join` will fail.
    Missing,
    /// There is one, and it is wrong. `kubeadm join` will fail.
    Wrong,
    /// It is right.
    Right,
}

impl ClusterInfo {
    /// Reads the API server's answer.
    ///
    /// # Errors
    /// It is no ConfigMap, or the kubeconfig in it names no CA.
    pub(super) fn parse(
        server: &str,
        body: &str,
        token: Option<&BootstrapToken>,
    ) -> Result<Self, DiscoverError> {
        let name = format!("cluster-info of {server}");
        let text = Text::new(Kind::Answer, &name, body);
        let documents = Documents::parse(&text)?;
        let top = documents.first()?;
        let kind = top.get("kind")?;
        if kind.text()?.is_some_and(|kind| kind != "ConfigMap") {
            return Err(
                kind.refuse("it is not ConfigMap, so this is not the cluster's cluster-info")
            );
        }
        let data = top.get("data")?;
        let field = data.get("kubeconfig")?;
        let Some(kubeconfig) = field.raw()? else {
            return Err(field.refuse_with(
                "it is missing",
                "set it up with `kubeadm init phase bootstrap-token`",
            ));
        };
        let signed = match token {
            None => Signed::NoToken,
            Some(token) => match data
                .get(&format!("jws-kubeconfig-{}", token.id()))?
                .text()?
            {
                None => Signed::Missing,
                Some(text) if signature::is_valid(text, kubeconfig, token) => Signed::Right,
                Some(_) => Signed::Wrong,
            },
        };
        let parsed = kubeconfig::read(&Text::new(Kind::Answer, &name, kubeconfig))?;
        let pem = match parsed.ca.map(|ca| ca.value) {
            Some(Pem::Inline(pem)) => pem,
            Some(Pem::File(_)) | None => return Err(field.refuse("it holds no CA")),
        };
        let certificates = CertificateDer::pem_slice_iter(&pem)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| field.refuse("the CA in it is damaged PEM"))?;
        Ok(Self {
            certificates,
            signed,
        })
    }

    /// The certificates that pins and signature vouch for; none when they vouch for nothing.
    ///
    /// Pins alone vouch only for the certificates they match: whoever sits in between could have put another CA beside
    /// the true one, and only the token's signature covers the whole.
    pub(super) fn vouched(&self, pins: Option<&[CaHash]>) -> Vec<CertificateDer<'static>> {
        let matching = pins.map(|pins| CaHash::matching(pins, &self.certificates));
        match (matching, self.signed) {
            (Some(matching), _) if matching.is_empty() => Vec::new(),
            (_, Signed::Right) => self.certificates.clone(),
            (Some(matching), _) => matching,
            (None, _) => Vec::new(),
        }
    }

    /// The hashes of what it holds, for people to compare.
    pub(super) fn hashes(&self) -> String {
        let hashes: Vec<_> = self
            .certificates
            .iter()
            .filter_map(CaHash::of)
            .map(|hash| hash.to_string())
            .collect();
        hashes.join(", ")
    }

    /// What a CA from here is called.
    pub(super) fn path(server: &str) -> PathBuf {
        format!("cluster-info of {server}").into()
    }
}
