//! A host of the lab.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::Result;

use crate::link::{End, NodeId};
use crate::netns::Namespace;
use crate::pki::Identity;

/// A namespace with a name, addresses and a place on the link.
#[derive(Debug)]
pub struct Node {
    /// Host name.
    pub name: String,
    /// Its place on the link.
    pub id: NodeId,
    /// Its network.
    pub namespace: Namespace,
    /// Its IPv4 address, in 10.1.0.0/24.
    pub v4: Ipv4Addr,
    /// Its IPv6 address, in `fd00:1::/64`, with the same last number.
    pub v6: Ipv6Addr,
}

impl Node {
    /// Makes the namespace of a host whose addresses end in `host`.
    ///
    /// # Errors
    /// When the namespace cannot be made.
    pub(super) fn create(name: &str, id: NodeId, host: u8) -> Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            id,
            namespace: Namespace::create()?,
            v4: Ipv4Addr::new(10, 1, 0, host),
            v6: Ipv6Addr::new(0xfd00, 1, 0, 0, 0, 0, 0, host.into()),
        })
    }

    /// One of its ports, at its IPv4 address.
    #[must_use]
    pub fn at(&self, port: u16) -> SocketAddr {
        (self.v4, port).into()
    }

    /// One of its ports, at its IPv6 address.
    #[must_use]
    pub fn at_v6(&self, port: u16) -> SocketAddr {
        (self.v6, port).into()
    }

    /// Whom its certificates are for.
    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity {
            name: self.name.clone(),
            addresses: self.addresses().to_vec(),
        }
    }

    pub(super) fn end(&self) -> End<'_> {
        End {
            namespace: &self.namespace,
            addresses: vec![(self.v4.into(), 24), (self.v6.into(), 64)],
        }
    }

    fn addresses(&self) -> [IpAddr; 2] {
        [self.v4.into(), self.v6.into()]
    }
}
