//! SRV records (RFC 2782), by which etcd clusters announce their members.

use hickory_resolver::net::NetError;
use hickory_resolver::proto::rr::{RData, RecordType};
use tokio::time::{Instant, timeout_at};

use super::Resolver;
use crate::target::{Role, TargetSpec};

impl Resolver {
    /// Finds the hosts and ports that offer `service`, for example `_etcd-client-ssl._tcp.example.com`; none when there
    /// is no such record.
    ///
    /// # Errors
    /// No name server answered before `deadline`, or one answered with a failure; one sentence.
    pub async fn services(
        &self,
        role: Role,
        service: &str,
        deadline: Instant,
    ) -> Result<Vec<TargetSpec>, String> {
        let Some([resolver, _]) = &self.families else {
            return Err(format!(
                "`{service}` cannot be looked up: the settings in /etc/resolv.conf are unusable"
            ));
        };
        let name = format!("{}.", service.trim_end_matches('.'));
        let lookup = match timeout_at(deadline, resolver.lookup(name, RecordType::SRV)).await {
            Ok(Ok(lookup)) => lookup,
            Ok(Err(error)) if error.is_no_records_found() || error.is_nx_domain() => {
                return Ok(Vec::new());
            }
            Ok(Err(NetError::Timeout)) | Err(_) => {
                return Err(format!(
                    "no name server ({}) answered the question for `{service}` in time; check that UDP and TCP port 53 \
                     are open to it, or name the members with --etcd",
                    self.servers
                ));
            }
            Ok(Err(error)) => {
                return Err(format!(
                    "`{service}` cannot be looked up (asked {}): {error}; check the name server, or name the members \
                     with --etcd",
                    self.servers
                ));
            }
        };
        let mut found = Vec::new();
        for record in lookup.answers() {
            if let RData::SRV(record) = &record.data {
                let host = record.target.to_utf8();
                let host = host.trim_end_matches('.');
                // RFC 2782: the root as target says that the service is decidedly not offered.
                if !host.is_empty() && record.port > 0 {
                    found.push(TargetSpec {
                        role,
                        host: host.to_owned(),
                        port: record.port,
                    });
                }
            }
        }
        Ok(found)
    }
}
