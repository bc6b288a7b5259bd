//! Which connections of the kernel's list are observed: as the kernel side decides it.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use probe_common::endpoint::{Role, Side};

use super::listing::End;
use crate::bpf::ObserverConfig;

pub(super) struct Watched {
    ports: BTreeMap<u16, Role>,
    addresses: HashMap<SocketAddr, Role>,
}

impl Watched {
    pub(super) fn new(config: &ObserverConfig) -> Self {
        let canonical =
            |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        Self {
            ports: config.ports.iter().copied().collect(),
            addresses: config
                .addresses
                .iter()
                .map(|&(address, role)| (canonical(address), role))
                .collect(),
        }
    }

    /// What to ask the kernel for.
    pub(super) fn questions(&self) -> Vec<(u16, End)> {
        let remote = self.addresses.keys().map(SocketAddr::port);
        let mut questions: Vec<_> = self
            .ports
            .keys()
            .flat_map(|&port| [(port, End::Local), (port, End::Remote)])
            .chain(remote.map(|port| (port, End::Remote)))
            .collect();
        questions.sort_unstable_by_key(|&(port, end)| (port, end == End::Remote));
        questions.dedup();
        questions
    }

    /// What a connection is observed as: by its remote address, else by its remote port, else by its local one.
    pub(super) fn role_of(&self, remote: SocketAddr, local_port: u16) -> Option<(Role, Side)> {
        let client = self
            .addresses
            .get(&remote)
            .or_else(|| self.ports.get(&remote.port()));
        let server = || {
            self.ports
                .get(&local_port)
                .map(|&role| (role, Side::Server))
        };
        client.map(|&role| (role, Side::Client)).or_else(server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_decides_before_the_port() {
        let balancer: SocketAddr = "10.0.0.9:443".parse().unwrap();
        let watched = Watched::new(&ObserverConfig {
            ports: vec![(2379, Role::EtcdClient), (2380, Role::EtcdPeer)],
            addresses: vec![(balancer, Role::ApiServer)],
            ..ObserverConfig::default()
        });
        let role = |remote: &str, local| watched.role_of(remote.parse().unwrap(), local);
        assert_eq!(
            role("10.0.0.9:443", 9),
            Some((Role::ApiServer, Side::Client))
        );
        assert_eq!(role("10.0.0.8:443", 9), None);
        assert_eq!(
            role("10.0.0.8:2380", 2379),
            Some((Role::EtcdPeer, Side::Client))
        );
        assert_eq!(
            role("10.0.0.8:9", 2379),
            Some((Role::EtcdClient, Side::Server))
        );
        assert_eq!(
            watched.questions(),
            [
                (443, End::Remote),
                (2379, End::Local),
                (2379, End::Remote),
                (2380, End::Local),
                (2380, End::Remote)
            ]
        );
    }
}
