//! The dns stage.

mod services;

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::pin::pin;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::system_conf::read_system_conf;
use tokio::time::{Instant, timeout, timeout_at};

use crate::probe::report::{ProbeFailure, Stage};
use crate::probe::text;
use crate::target::{Target, TargetSpec};

/// How much longer the second family may take than the first.
const OTHER_FAMILY: Duration = Duration::from_secs(1);
/// Longer than any deadline.
const UNLIMITED: Duration = Duration::from_hours(1);

/// What a target's host came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// One per address, in the order the resolver gave them; never empty.
    pub targets: Vec<Target>,
    /// How long the name took; `None` for an address literal.
    pub took: Option<Duration>,
}

/// Resolves names as this host is set up to (/etc/hosts, /etc/resolv.conf with its search domains), without the C
/// library: so does kubeadm, and so does a static binary where there is no C library to ask.
pub struct Resolver {
    families: Option<[TokioResolver; 2]>,
    servers: String,
    searches: bool,
}

impl Resolver {
    /// Reads the host's settings. Must be called within a tokio runtime.
    #[must_use]
    pub fn from_system() -> Self {
        let (config, options) = read_system_conf().unwrap_or_else(|error| {
            // resolv.conf(5): without a usable file the name server is on this host.
            log::warn!("/etc/resolv.conf is not used, 127.0.0.1 is asked: {error}");
            let local = NameServerConfig::udp_and_tcp(IpAddr::from([127, 0, 0, 1]));
            (
                ResolverConfig::from_parts(None, Vec::new(), vec![local]),
                ResolverOpts::default(),
            )
        });
        Self::new(&config, options)
    }

    fn new(config: &ResolverConfig, mut options: ResolverOpts) -> Self {
        let servers: Vec<_> = config
            .name_servers()
            .iter()
            .map(|server| server.ip.to_string())
            .collect();
        let mut family = |strategy| {
            options.ip_strategy = strategy;
            TokioResolver::builder_with_config(config.clone(), TokioRuntimeProvider::default())
                .with_options(options.clone())
                .build()
                .ok()
        };
        Self {
            families: family(LookupIpStrategy::Ipv4Only)
                .zip(family(LookupIpStrategy::Ipv6Only))
                .map(Into::into),
            servers: servers.join(", "),
            searches: !config.search().is_empty(),
        }
    }

    /// Finds the addresses of a target: each becomes a target of its own.
    ///
    /// # Errors
    /// The name does not exist, has no address, or no name server said so before `deadline`; an IPv6 zone names no
    /// interface.
    pub async fn resolve(
        &self,
        spec: &TargetSpec,
        deadline: Instant,
    ) -> Result<Resolved, ProbeFailure> {
        if let Some(address) = literal(spec)? {
            return Ok(Resolved {
                targets: vec![dialled(spec, address)],
                took: None,
            });
        }
        let started = Instant::now();
        let Some([v4, v6]) = &self.families else {
            return Err(unresolved(format!(
                "`{}` cannot be resolved: the settings in /etc/resolv.conf are unusable; correct them or use an address",
                spec.host
            )));
        };
        let found = async {
            match both(v4, v6, &spec.host).await {
                // The resolver reports the last name it tried, which a search domain made up.
                Err(error) if self.searches && error.is_no_records_found() => {
                    let absolute = format!("{}.", spec.host.trim_end_matches('.'));
                    both(v4, v6, &absolute).await
                }
                found => found,
            }
        };
        match timeout_at(deadline, found).await {
            Ok(Ok(addresses)) => {
                let mut targets: Vec<Target> = Vec::new();
                for address in addresses {
                    let target = dialled(spec, SocketAddr::new(address, spec.port));
                    if !targets.contains(&target) {
                        targets.push(target);
                    }
                }
                Ok(Resolved {
                    targets,
                    took: Some(started.elapsed()),
                })
            }
            Ok(Err(error)) => Err(self.explain(spec, &error, started.elapsed())),
            Err(_) => Err(self.silence(spec, started.elapsed())),
        }
    }

    fn explain(&self, spec: &TargetSpec, error: &NetError, waited: Duration) -> ProbeFailure {
        let (host, servers) = (&spec.host, &self.servers);
        if error.is_nx_domain() {
            return unresolved(format!(
                "`{host}` does not exist in DNS (asked {servers}): check its spelling, the search domains in \
                 /etc/resolv.conf, or add it to /etc/hosts"
            ));
        }
        match error {
            NetError::Timeout => self.silence(spec, waited),
            NetError::Dns(DnsError::ResponseCode(code)) => unresolved(format!(
                "the name server ({servers}) answered the question for `{host}` with `{code}`: see its log, ask another \
                 one, or use an address"
            )),
            _ if error.is_no_records_found() => self.no_address(spec),
            NetError::NoConnections | NetError::Io(_) => unresolved(format!(
                "`{host}` cannot be resolved, because the name server ({servers}) cannot be reached: {error}; check \
                 /etc/resolv.conf, or use an address"
            )),
            _ => unresolved(format!(
                "`{host}` cannot be resolved (asked {servers}): {error}; check the name, or use an address"
            )),
        }
    }

    fn no_address(&self, spec: &TargetSpec) -> ProbeFailure {
        unresolved(format!(
            "`{}` exists in DNS but has no address (asked {}): give it an A or AAAA record, or use an address",
            spec.host, self.servers
        ))
    }

    fn silence(&self, spec: &TargetSpec, waited: Duration) -> ProbeFailure {
        unresolved(format!(
            "no name server ({}) answered the question for `{}` within {}: check that it runs and that UDP and TCP port \
             53 are open to it, or use an address",
            self.servers,
            spec.host,
            text::span(waited)
        ))
    }
}

/// Asks for both families at once. Where one has answered, the other gets only a little longer: name servers and
/// firewalls that drop AAAA questions are common, and their silence is not the name's.
async fn both(v4: &TokioResolver, v6: &TokioResolver, host: &str) -> Result<Vec<IpAddr>, NetError> {
    let mut v4 = pin!(addresses(v4, host));
    let mut v6 = pin!(addresses(v6, host));
    let (four, six) = tokio::select! {
        four = &mut v4 => {
            let patience = if four.is_ok() { OTHER_FAMILY } else { UNLIMITED };
            (Some(four), timeout(patience, v6).await.ok())
        }
        six = &mut v6 => {
            let patience = if six.is_ok() { OTHER_FAMILY } else { UNLIMITED };
            (timeout(patience, v4).await.ok(), Some(six))
        }
    };
    match (four, six) {
        (Some(Ok(mut four)), Some(Ok(six))) => {
            four.extend(six);
            Ok(four)
        }
        (Some(Ok(one)), _) | (_, Some(Ok(one))) => Ok(one),
        (Some(Err(error)), _) | (_, Some(Err(error))) => Err(error),
        (None, None) => Err(NetError::Timeout),
    }
}

async fn addresses(resolver: &TokioResolver, host: &str) -> Result<Vec<IpAddr>, NetError> {
    let found: Vec<_> = resolver.lookup_ip(host).await?.iter().collect();
    if found.is_empty() {
        return Err(NetError::Message("no address"));
    }
    Ok(found)
}

fn unresolved(text: String) -> ProbeFailure {
    ProbeFailure {
        stage: Stage::Dns,
        result: "unresolved",
        text,
    }
}

fn dialled(spec: &TargetSpec, address: SocketAddr) -> Target {
    Target {
        spec: spec.clone(),
        address: Some(address),
    }
}

/// The address, where the host is one. A zone names the interface a link-local address is reached through, by name or
/// by number (RFC 4007 section 11).
fn literal(spec: &TargetSpec) -> Result<Option<SocketAddr>, ProbeFailure> {
    if let Ok(address) = spec.host.parse::<IpAddr>() {
        return Ok(Some(SocketAddr::new(address, spec.port)));
    }
    let Some((address, zone)) = spec.host.split_once('%') else {
        return Ok(None);
    };
    let Ok(address) = address.parse::<Ipv6Addr>() else {
        return Ok(None);
    };
    let scope = match zone.parse::<u32>() {
        Ok(number) => number,
        Err(_) => interface(zone).ok_or_else(|| {
            unresolved(format!(
                "`{}` names the interface `{zone}`, which this host does not have; `ip link` lists those it has",
                spec.host
            ))
        })?,
    };
    let address = SocketAddrV6::new(address, spec.port, 0, scope);
    Ok(Some(SocketAddr::V6(address)))
}

fn interface(name: &str) -> Option<u32> {
    let any = rustix::net::socket(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::DGRAM,
        None,
    )
    .ok()?;
    rustix::net::netdevice::name_to_index(&any, name).ok()
}

#[cfg(test)]
mod tests;
