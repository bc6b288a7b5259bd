//! A way over three routers, 50 ms of it between the first and the second.
//!
//! ```text
//! client --veth-- first --TUN link, 50 ms-- second --veth-- third --veth-- server
//! ```

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result};
use joinprobe_lab::apiserver::ApiServer;
use joinprobe_lab::lab::{Finished, Running, binary};
use joinprobe_lab::link::{DEVICE, End};
use joinprobe_lab::pki::{ClusterPki, Identity};
use joinprobe_lab::{Impairment, Link, Namespace, NodeId, scratch_dir};
use tempfile::TempDir;

pub(crate) const PORT: u16 = 6443;
pub(crate) const ADDED: Duration = Duration::from_millis(50);

/// Everything, running.
pub(crate) struct Routers {
    _server: ApiServer,
    // The link goes before the namespaces it is in.
    _link: Link,
    pub(crate) client: Namespace,
    _first: Namespace,
    pub(crate) second: Namespace,
    pub(crate) third: Namespace,
    pub(crate) host: Namespace,
    pub(crate) pki: ClusterPki,
    _folder: TempDir,
}

impl Routers {
    pub(crate) fn start() -> Result<Self> {
        let folder = scratch_dir()?;
        let client = Namespace::create()?;
        let (first, second, third) = (
            Namespace::create()?,
            Namespace::create()?,
            Namespace::create()?,
        );
        let host = Namespace::create()?;
        for router in [&first, &second, &third] {
            router.sysctl("net.ipv4.ip_forward", "1")?;
            router.sysctl("net.ipv6.conf.all.forwarding", "1")?;
        }
        cable(&client, &first, 0)?;
        cable(&second, &third, 2)?;
        cable(&third, &host, 3)?;
        let link = Link::start(&[end(&first, 1, 1)?, end(&second, 1, 2)?], 1)?;
        for (address, node) in [(net(0, 1)?, 0), (net(3, 2)?, 1)] {
            link.route(address[0], NodeId(node));
            link.route(address[1], NodeId(node));
        }
        link.set_both(NodeId(0), NodeId(1), Impairment::half_of_rtt(ADDED));
        route(&client, "default", &via(0, 2)?)?;
        route(
            &first,
            "default",
            &[format!("dev {DEVICE}"), format!("dev {DEVICE}")],
        )?;
        route(&second, "3", &via(2, 2)?)?;
        route(
            &second,
            "0",
            &[format!("dev {DEVICE}"), format!("dev {DEVICE}")],
        )?;
        route(&third, "default", &via(2, 1)?)?;
        route(&host, "default", &via(3, 1)?)?;
        let pki = ClusterPki::create(&folder.path().join("pki"))?;
        let identity = Identity {
            name: "api".to_owned(),
            addresses: net(3, 2)?.to_vec(),
        };
        let server = ApiServer::start(
            &host,
            &target()?,
            &pki.apiserver(&identity)?,
            &pki.kubernetes.pair.cert,
        )?;
        Ok(Self {
            _server: server,
            _link: link,
            client,
            _first: first,
            second,
            third,
            host,
            pki,
            _folder: folder,
        })
    }

    /// Preflight against one address of the server, in JSON.
    pub(crate) fn preflight(&self, target: SocketAddr, more: &[&str]) -> Result<Finished> {
        let (target, ca) = (
            target.to_string(),
            self.pki.kubernetes.pair.cert.display().to_string(),
        );
        let fixed = [
            "preflight",
            "--no-discovery",
            "--worker",
            "-o",
            "json",
            "--timeout",
            "4s",
            "--apiserver",
            &target,
            "--apiserver-ca",
            &ca,
        ];
        let args = fixed.iter().chain(more).map(Into::into);
        Running::start(&self.client, &binary()?, args)?.wait()
    }
}

/// The server's addresses.
pub(crate) fn target() -> Result<[SocketAddr; 2]> {
    Ok(net(3, 2)?.map(|address| SocketAddr::new(address, PORT)))
}

/// A host's two addresses on the n-th net of the way.
pub(crate) fn net(n: u8, host: u8) -> Result<[IpAddr; 2]> {
    Ok([
        format!("10.20.{n}.{host}").parse()?,
        format!("fd00:20:{n}::{host}").parse()?,
    ])
}

fn via(n: u8, host: u8) -> Result<[String; 2]> {
    Ok(net(n, host)?.map(|address| format!("via {address}")))
}

fn end(namespace: &Namespace, n: u8, host: u8) -> Result<End<'_>> {
    let [v4, v6] = net(n, host)?;
    Ok(End {
        namespace,
        addresses: vec![(v4, 24), (v6, 64)],
    })
}

/// Joins two namespaces by a pair of Ethernet devices.
pub(crate) fn cable(left: &Namespace, right: &Namespace, n: u8) -> Result<()> {
    left.ip(&format!(
        "link add right{n} type veth peer name left{n} netns {}",
        right.name()
    ))
    .context("no veth devices")?;
    for (namespace, device, host) in [
        (left, format!("right{n}"), 1),
        (right, format!("left{n}"), 2),
    ] {
        let [v4, v6] = net(n, host)?;
        namespace.ip(&format!("addr add {v4}/24 dev {device}"))?;
        namespace.ip(&format!("addr add {v6}/64 dev {device} nodad"))?;
        namespace.ip(&format!("link set {device} up"))?;
    }
    Ok(())
}

/// Sends a net of the way, or everything, somewhere, in both families.
fn route(namespace: &Namespace, to: &str, way: &[String; 2]) -> Result<()> {
    let [v4, v6] = if to == "default" {
        ["default".to_owned(), "default".to_owned()]
    } else {
        [format!("10.20.{to}.0/24"), format!("fd00:20:{to}::/64")]
    };
    namespace.ip(&format!("route add {v4} {}", way[0]))?;
    namespace.ip(&format!("-6 route add {v6} {}", way[1]))
}
