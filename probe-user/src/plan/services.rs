//! etcd members by SRV records, as etcd's own `--discovery-srv` finds them.

use super::Planning;
use crate::discover::{Found, Origin};
use crate::target::Role;
use crate::verdict::{Finding, FindingState};

const ID: &str = "etcd-srv";

/// Looks up the records of every domain that was named, and adds the members to the targets.
pub(super) async fn add(planning: &mut Planning<'_>) {
    for domain in planning.request.services {
        let mut found = 0;
        for (role, service) in [
            (Role::EtcdClient, "_etcd-client-ssl._tcp"),
            (Role::EtcdPeer, "_etcd-server-ssl._tcp"),
        ] {
            let name = format!("{service}.{domain}");
            let deadline = planning.deadline();
            match planning.resolver.services(role, &name, deadline).await {
                Ok(members) => {
                    found += members.len();
                    for member in members {
                        planning.add(Found::new(member, Origin::Cluster(format!("SRV {name}"))));
                    }
                }
                Err(reason) => planning.say(ID, FindingState::Warn, reason),
            }
        }
        let finding = if found == 0 {
            Finding::plain(
                ID,
                FindingState::Warn,
                format!("{domain} has no SRV records of etcd over TLS"),
            )
            .hint(
                "etcd looks for _etcd-client-ssl._tcp and _etcd-server-ssl._tcp; check the domain.",
            )
        } else {
            Finding::plain(
                ID,
                FindingState::Pass,
                format!("the SRV records of {domain} name {found} etcd addresses"),
            )
        };
        planning.findings.push(finding);
    }
}
