//! Real runs in every format: a member that answers nothing, on this host's loopback.

use anyhow::{Context, Result};
use joinprobe_lab::{schema, take_turn};

use crate::errors::joinprobe;

/// A port nobody listens on.
fn dead() -> Result<u16> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    Ok(listener.local_addr()?.port())
}

#[test]
fn a_refused_member_fails_in_every_format() -> Result<()> {
    let Some(_turn) = take_turn(&[])? else {
        return Ok(());
    };
    for (format, code, begin) in [
        ("table", 3, "environment of"),
        ("json", 3, "{"),
        ("short", 3, "fail: etcd-client 127.0.0.1:"),
        ("nagios", 2, "JOINPROBE CRITICAL - etcd-client 127.0.0.1:"),
        ("npd", 1, "fail: "),
        ("junit", 3, "<?xml"),
    ] {
        let target = format!("127.0.0.1:{}", dead()?);
        let output = joinprobe(&format!(
            "preflight --no-discovery --etcd {target} --timeout 5s -o {format}"
        ))?;
        let stdout = String::from_utf8(output.stdout.clone())?;
        assert_eq!(output.status.code(), Some(code), "{format}: {output:?}");
        assert!(stdout.starts_with(begin), "{format}: {stdout}");
        match format {
            "json" => {
                let lines = schema::check_lines(&stdout)?;
                assert_eq!(lines.len(), 1);
            }
            "junit" => {
                let document = roxmltree::Document::parse(&stdout)?;
                let failed = document.root_element().attribute("failures");
                assert_ne!(failed.context("no count")?, "0");
            }
            "short" | "npd" => assert_eq!(stdout.lines().count(), 1, "{stdout}"),
            _ => {}
        }
    }
    Ok(())
}
