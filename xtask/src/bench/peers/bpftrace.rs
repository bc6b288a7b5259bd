//! bpftrace scripts that histogram the smoothed RTT of the tracepoint `tcp:tcp_probe`, which fires for every segment that
//! an established socket of the host receives.

use std::path::Path;

use anyhow::{Result, ensure};
use joinprobe_lab::Namespace;

use super::super::Bench;
use super::super::load::Server;
use super::super::measured::Measured;
use super::{Outcome, load};

/// All in one.
const ONE_HISTOGRAM: &str = "BEGIN { printf(\"ready\\n\"); } \
     tracepoint:tcp:tcp_probe /args->sport == 2379 || args->dport == 2379/ { @srtt_us = hist(args->srtt); }";

/// Told apart as joinprobe does: on the client side by remote address (IPv4) and port, on the server side by port.
const BY_ADDRESS: &str = "BEGIN { printf(\"ready\\n\"); } \
     tracepoint:tcp:tcp_probe /args->sport == 2379 || args->dport == 2379/ { \
     if (args->dport == 2379) { @client_us[args->daddr[4] << 24 | args->daddr[5] << 16 | args->daddr[6] << 8 \
     | args->daddr[7], args->dport] = hist(args->srtt); } else { @server_us[args->sport] = hist(args->srtt); } }";

/// It needs the trace file system, which is mounted for it alone.
const START: &str = "mount -t debugfs none /sys/kernel/debug; mount -t tracefs none /sys/kernel/tracing; \
     exec bpftrace -e \"$0\" 1>&2";

pub(super) fn one_histogram(_: &Bench, namespace: &Namespace, echo: &Server) -> Result<Outcome> {
    run(namespace, echo, ONE_HISTOGRAM)
}

pub(super) fn by_address(_: &Bench, namespace: &Namespace, echo: &Server) -> Result<Outcome> {
    run(namespace, echo, BY_ADDRESS)
}

pub(super) fn start_one_histogram(_: &Bench, namespace: &Namespace) -> Result<Measured> {
    start(namespace, ONE_HISTOGRAM)
}

pub(super) fn start_by_address(_: &Bench, namespace: &Namespace) -> Result<Measured> {
    start(namespace, BY_ADDRESS)
}

fn start(namespace: &Namespace, script: &str) -> Result<Measured> {
    Measured::start(
        namespace,
        Path::new("unshare"),
        &[
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            START,
            script,
        ],
        "ready",
    )
}

fn run(namespace: &Namespace, echo: &Server, script: &str) -> Result<Outcome> {
    let tool = start(namespace, script)?;
    let before = tool.used()?;
    load(namespace, echo)?;
    let used = tool.used()?.since(before);
    let said = tool.stop()?.1;
    let samples = said.lines().filter_map(counted).sum();
    ensure!(samples > 0, "no histogram: {said}");
    Ok(Outcome { used, samples })
}

/// The count of a line such as `[16, 32)   155 |@@@   |`.
fn counted(line: &str) -> Option<u64> {
    let (_, rest) = line.strip_prefix('[')?.split_once([')', ']'])?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_counted() {
        assert_eq!(counted("[4, 8)               141 |@@@@   |"), Some(141));
        assert_eq!(counted("[0]      3 |@   |"), Some(3));
        assert_eq!(counted("@client_us[2130706433, 2379]: "), None);
    }
}
