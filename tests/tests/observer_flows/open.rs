//! What is counted of a connection that goes on.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use anyhow::{Result, ensure};
use joinprobe_lab::bpf::Cgroup;
use probe_common::endpoint::Side;

use super::{ETCD, in_namespace, observer_on};

#[test]
fn few_of_its_segments_are_missing_at_any_time() -> Result<()> {
    in_namespace(|| {
        let cgroup = Cgroup::enter()?;
        let observer = observer_on(&cgroup)?;
        let listener = TcpListener::bind(ETCD)?;
        let mut client = TcpStream::connect(ETCD)?;
        let (mut server, _) = listener.accept()?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let mut sent = 0;
        for until in [5, 20, 100, 1_000] {
            let mut message = [7; 64];
            while sent < until {
                client.write_all(&message)?;
                server.read_exact(&mut message)?;
                server.write_all(&message)?;
                client.read_exact(&mut message)?;
                sent += 1;
            }
            for side in [Side::Client, Side::Server] {
                let found = observer.endpoints()?;
                let counts = found.iter().find(|(endpoint, _)| endpoint.side == side);
                let counted = counts.map_or(0, |(_, counts)| counts.counters().segments_out);
                // The newest segment of a side may have no answer yet, and so no sample.
                let least = sent - (sent / 8).min(32) - 1;
                ensure!(
                    (least..=sent).contains(&counted),
                    "{side:?}: {counted} of {sent}"
                );
            }
        }
        Ok(())
    })
}
