//! A real node_exporter serves the textfile.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use anyhow::Result;
use joinprobe_lab::monitoring::{NodeExporter, promtool};
use joinprobe_lab::{can_run, scratch_dir};
use probe_user::output::{Exporter as _, Textfile};

use crate::samples;

#[test]
fn node_exporter_serves_it_without_an_error() -> Result<()> {
    if !can_run(&["prometheus-node-exporter", "promtool"])? {
        return Ok(());
    }
    let folder = scratch_dir()?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    let path = folder.path().join("joinprobe.prom");
    let mut textfile = Textfile::new(&path)?;
    textfile.interval(&samples::interval()?)?;
    assert_eq!(
        promtool(&["check", "metrics"], &fs::read_to_string(&path)?)?,
        ""
    );
    let exporter = NodeExporter::start(folder.path())?;
    let page = exporter.metrics()?;
    for line in [
        "node_textfile_scrape_error 0",
        "joinprobe_verdict{state=\"warn\"} 1",
        "joinprobe_connections_total{outcome=\"established\",role=\"etcd-peer\",side=\"client\",target=\"[fd00::2]:2380\"} 200",
        "joinprobe_tcp_handshake_rtt_seconds_count{role=\"apiserver\",side=\"client\",target=\"10.1.0.9:6443\"} 200",
    ] {
        assert!(
            page.lines().any(|found| found == line),
            "{line} is missing:\n{page}"
        );
    }
    textfile.interval(&samples::by_process()?)?;
    let page = exporter.metrics()?;
    for line in [
        "node_textfile_scrape_error 0",
        "joinprobe_tcp_handshake_rtt_seconds_count{process=\"etcd\",role=\"apiserver\",side=\"client\",target=\"10.1.0.9:6443\"} 200",
    ] {
        assert!(
            page.lines().any(|found| found == line),
            "{line} is missing:\n{page}"
        );
    }
    // While the file is replaced again and again, nobody reads half of it.
    for _ in 0..50 {
        textfile.interval(&samples::interval()?)?;
        assert!(
            exporter
                .metrics()?
                .contains("\nnode_textfile_scrape_error 0\n")
        );
    }
    Ok(())
}
