//! Arguments that say what a preflight measures, and how: those of `preflight`, and of `run --preflight`.

use std::path::PathBuf;
use std::time::Duration;

use super::{duration, number};

/// What a preflight measures, and how.
#[derive(Debug, clap::Args)]
pub struct ProbingArgs {
    /// etcd member's client address, usually port 2379; repeatable
    #[arg(long, value_name = "HOST:PORT", help_heading = "Targets")]
    pub etcd: Vec<String>,
    /// etcd member's peer address, usually port 2380; repeatable
    #[arg(long, value_name = "HOST:PORT", help_heading = "Targets")]
    pub etcd_peer: Vec<String>,
    /// API server or load balancer, usually port 6443; repeatable
    #[arg(long, value_name = "HOST:PORT", help_heading = "Targets")]
    pub apiserver: Vec<String>,
    /// kubeadm's join configuration [default: /run/kubeadm/kubeadm-join-config.yaml, /etc/kubeadm.yml]
    #[arg(long, value_name = "FILE", help_heading = "Discovery")]
    pub join_config: Option<PathBuf>,
    /// kubeconfig that names the API server [default: admin.conf, kubelet.conf, bootstrap-kubelet.conf in /etc/kubernetes]
    #[arg(long, value_name = "FILE", help_heading = "Discovery")]
    pub kubeconfig: Option<PathBuf>,
    /// Domain whose SRV records name the members of an external etcd, as for etcd's --discovery-srv; repeatable
    #[arg(long, value_name = "DOMAIN", help_heading = "Discovery")]
    pub etcd_srv: Vec<String>,
    /// Ask the API server for the etcd pods: one read-only list, with a kubeconfig's credentials or, where pki/ca.key
    /// is present, with a client certificate made in memory
    #[arg(long, help_heading = "Discovery")]
    pub discover_etcd: bool,
    /// Ask etcd for its members: one more read-only call; needs a client certificate for etcd
    #[arg(long, help_heading = "Discovery")]
    pub discover_members: bool,

    /// CA that signed etcd's certificates (PEM)
    #[arg(long, value_name = "FILE", help_heading = "Credentials")]
    pub etcd_cacert: Option<PathBuf>,
    /// Client certificate for etcd (PEM)
    #[arg(long, value_name = "FILE", help_heading = "Credentials")]
    pub etcd_cert: Option<PathBuf>,
    /// Key of the client certificate (PEM, not encrypted)
    #[arg(long, value_name = "FILE", help_heading = "Credentials")]
    pub etcd_key: Option<PathBuf>,
    /// Where etcd/ca.key is present and no client certificate is, make one in memory: valid 5 minutes, never written
    #[arg(long, help_heading = "Credentials")]
    pub etcd_mint_client_cert: bool,
    /// CA that signed the API server's certificate (PEM)
    #[arg(long, value_name = "FILE", help_heading = "Credentials")]
    pub apiserver_ca: Option<PathBuf>,

    /// Time for the whole preflight
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse_positive, help_heading = "Probing")]
    pub timeout: Duration,
    /// Repeat failed targets for so long (a load balancer may not be ready yet)
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration::parse, help_heading = "Probing")]
    pub retry_for: Duration,
    /// Most connections to one target; more than one only while its median RTT is undecided
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = number::connections, help_heading = "Probing")]
    pub max_connections: u32,
    /// Send the ClientHello in one piece, for servers or middleboxes that want it so; no path RTT then
    #[arg(long, help_heading = "Probing")]
    pub no_pacing: bool,
    /// For targets that are not all right (or all, when all are): send SYNs with growing TTL, to show at which hop the
    /// time goes; up to 10 s more
    #[arg(long, help_heading = "Probing")]
    pub trace: bool,
    /// Send the one read-only etcd request to every member instead of one
    #[arg(long, help_heading = "Probing")]
    pub probe_each_member: bool,

    /// Tolerate so many etcd members that do not answer
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true, value_parser = number::members, help_heading = "Verdict")]
    pub allow_unreachable: u32,
}
