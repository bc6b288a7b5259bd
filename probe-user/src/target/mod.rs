//! What is measured: a role and an address, and how a user writes them.

mod parse;
mod process;

use std::fmt;
use std::net::SocketAddr;

pub use parse::{ParseError, parse};
pub use probe_common::endpoint::{Role, Side};
pub use process::ProcessName;

/// The words for a [`Role`] that users read and write.
pub trait RoleName: Copy {
    /// `etcd-client`, `etcd-peer` or `apiserver`: label and JSON value.
    fn name(self) -> &'static str;
    /// Whether the role is one of etcd's.
    fn is_etcd(self) -> bool;
    /// The port that Kubernetes gives the role when nobody says otherwise.
    fn default_port(self) -> u16;
}

impl RoleName for Role {
    fn name(self) -> &'static str {
        match self {
            Self::EtcdClient => "etcd-client",
            Self::EtcdPeer => "etcd-peer",
            Self::ApiServer => "apiserver",
        }
    }

    fn is_etcd(self) -> bool {
        matches!(self, Self::EtcdClient | Self::EtcdPeer)
    }

    fn default_port(self) -> u16 {
        match self {
            Self::EtcdClient => 2379,
            Self::EtcdPeer => 2380,
            Self::ApiServer => 6443,
        }
    }
}

/// A target as the user wrote it: a host that may still have to be resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TargetSpec {
    /// What answers there.
    pub role: Role,
    /// Host name or address literal, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl fmt::Display for TargetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// A target with the one address that is dialled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// As the user wrote it.
    pub spec: TargetSpec,
    /// The address dialled; `None` while, or because, the name does not resolve.
    pub address: Option<SocketAddr>,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => write!(f, "{address}"),
            None => write!(f, "{}", self.spec),
        }
    }
}
