//! What joinprobe costs, as far as it does not depend on the machine's mood. What does is `cargo xtask bench`'s.
//!
//! The figures are what the present build needs. Who raises one says in the commit what is bought with it.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;

use anyhow::{Context, Result};
use joinprobe_lab::bpf::Cgroup;
use joinprobe_lab::programs::command;
use joinprobe_lab::{Namespace, take_turn};
use probe_common::endpoint::Role;
use probe_user::bpf::{Observer, ObserverConfig};

/// Instructions of each program as the kernel translates them; what it puts in for a map lookup differs a little from
/// release to release.
const INSTRUCTIONS: &[(&str, u64)] = &[
    ("joinprobe_ops", 3_900),
    ("joinprobe_rtt", 380),
    ("joinprobe_flows", 640),
    ("joinprobe_programs", 40),
];
/// Allowance for the kernel's own share.
const INSTRUCTIONS_SLACK: f64 = 1.05;

/// Allocations of a report's reading of the kernel side, for each endpoint with traffic.
const ALLOCATIONS_PER_ENDPOINT: u64 = 1;
/// And for those without, all together.
const ALLOCATIONS_AT_REST: u64 = 8;

/// The stripped release binary, in bytes.
const BINARY: u64 = 8_000_000;

#[test]
fn programs_are_as_long_as_recorded() -> Result<()> {
    let Some(_turn) = take_turn(&["bpftool"])? else {
        return Ok(());
    };
    let cgroup = Cgroup::enter()?;
    let observer = Observer::attach(&config(&cgroup))?;
    for id in observer.program_ids() {
        let output = command("bpftool")
            .args(["-j", "prog", "show", "id", &id.to_string()])
            .output()?;
        let shown: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let name = shown["name"].as_str().context("a program without a name")?;
        let instructions = shown["bytes_xlated"].as_u64().context("no length")? / 8;
        let (_, recorded) = INSTRUCTIONS
            .iter()
            .find(|(recorded, _)| recorded.starts_with(name))
            .with_context(|| format!("{name} is not recorded; it has {instructions}"))?;
        #[allow(clippy::cast_precision_loss, reason = "a few thousand")]
        let (now, limit) = (instructions as f64, *recorded as f64 * INSTRUCTIONS_SLACK);
        assert!(
            now <= limit,
            "{name} has {now} instructions, recorded are {recorded}"
        );
    }
    Ok(())
}

#[test]
fn a_report_allocates_by_endpoint_and_not_by_sample() -> Result<()> {
    let Some(_turn) = take_turn(&[])? else {
        return Ok(());
    };
    let cgroup = Cgroup::enter()?;
    let namespace = Namespace::create()?;
    namespace.enter(|| -> Result<()> {
        let observer = Observer::attach(&config(&cgroup))?;
        let allocations = || -> Result<(u64, u64)> {
            let mut endpoints = 0;
            let mut outcome = Ok(());
            let counted = allocation_counter::measure(|| {
                outcome = observer.each_endpoint(|_, counts| {
                    endpoints += 1;
                    drop(counts);
                });
            });
            outcome?;
            Ok((endpoints, counted.count_total))
        };
        let (_, at_rest) = allocations()?;
        assert!(at_rest <= ALLOCATIONS_AT_REST, "{at_rest} with no traffic");
        let listener = TcpListener::bind("127.0.0.1:2379")?;
        for connections in [1, 200] {
            for _ in 0..connections {
                drop(TcpStream::connect(listener.local_addr()?)?);
                listener.accept()?;
            }
            let (endpoints, now) = allocations()?;
            assert_eq!(endpoints, 2, "one on each side");
            let limit = ALLOCATIONS_AT_REST + endpoints * ALLOCATIONS_PER_ENDPOINT;
            assert!(
                now <= limit,
                "{now} after {connections} connections, limit {limit}"
            );
        }
        Ok(())
    })?
}

#[test]
fn the_release_binary_stays_small() -> Result<()> {
    // `cargo xtask test` names the release build; a debug build says nothing.
    let Some(binary) = std::env::var_os("JOINPROBE_BIN").map(PathBuf::from) else {
        anyhow::ensure!(
            std::env::var_os("CI").is_none(),
            "JOINPROBE_BIN does not name the release build"
        );
        return Ok(());
    };
    let bytes = binary.metadata()?.len();
    if binary.components().any(|part| part.as_os_str() == "debug") {
        return Ok(());
    }
    assert!(bytes <= BINARY, "{bytes} bytes, of {BINARY}");
    Ok(())
}

fn config(cgroup: &Cgroup) -> ObserverConfig {
    ObserverConfig {
        ports: vec![(2379, Role::EtcdClient)],
        cgroup: Some(cgroup.path().to_owned()),
        ..ObserverConfig::default()
    }
}
