//! The kernel side's table of flows: places are taken, given back, and nobody else's.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use joinprobe_lab::bpf::{Cgroup, OtherProgram};
use joinprobe_lab::programs::command;
use joinprobe_lab::{Namespace, take_turn};
use probe_common::endpoint::Side;
use probe_user::bpf::Observer;

use super::{ETCD, observer_on};

const UNWATCHED: &str = "127.0.0.1:9999";
/// Of so many connections, with two sockets each, some find their place of 4,096 taken.
const MANY: usize = 480;
const ROUND_TRIPS: usize = 3;
/// `BPF_SOCK_OPS_RTT_CB_FLAG`.
const RTT_FLAG: i32 = 8;

/// Runs a test in a namespace with an observer on a cgroup of the test's own.
fn observed(test: impl FnOnce(&Observer, &Cgroup) -> Result<()> + Send) -> Result<()> {
    let Some(_turn) = take_turn(&["bpftool"])? else {
        return Ok(());
    };
    Namespace::create()?.enter(|| {
        let cgroup = Cgroup::enter()?;
        let observer = observer_on(&cgroup)?;
        test(&observer, &cgroup)
    })?
}

/// Connections that are open at once, after so many round trips over each.
fn talk(address: &str, connections: usize) -> Result<Vec<(TcpStream, TcpStream)>> {
    let listener = TcpListener::bind(address)?;
    (0..connections)
        .map(|_| {
            let mut client = TcpStream::connect(address)?;
            let (mut server, _) = listener.accept()?;
            for _ in 0..ROUND_TRIPS {
                client.write_all(b"question")?;
                server.read_exact(&mut [0; 8])?;
                server.write_all(b"answer")?;
                client.read_exact(&mut [0; 6])?;
            }
            Ok((client, server))
        })
        .collect()
}

/// Connections established and closed, and round trips, at one side.
fn counted(observer: &Observer, side: Side) -> Result<(u64, u64, u64)> {
    let mut counted = (0, 0, 0);
    for (endpoint, counts) in observer.endpoints()? {
        if endpoint.side == side {
            let counters = counts.counters();
            counted.0 += counters.established;
            counted.1 += counters.closed;
            counted.2 += counts.distributions().segment.len();
        }
    }
    Ok(counted)
}

/// How many places of the table are claimed.
fn places_claimed(observer: &Observer) -> Result<usize> {
    const PLACE: usize = 128;
    let show = |arguments: &[&str]| -> Result<serde_json::Value> {
        let output = command("bpftool").arg("-j").args(arguments).output()?;
        Ok(serde_json::from_slice(&output.stdout)?)
    };
    for program in observer.program_ids() {
        let shown = show(&["prog", "show", "id", &program.to_string()])?;
        if shown["name"] != "joinprobe_ops" {
            continue;
        }
        for map in shown["map_ids"].as_array().context("no maps")? {
            let map = map.to_string();
            let name = show(&["map", "show", "id", &map])?["name"].to_string();
            if !name.contains("bss") {
                continue;
            }
            let dump = show(&["map", "dump", "id", &map])?;
            let bytes = dump[0]["value"].as_array().context("no value")?;
            ensure!(bytes.len().is_multiple_of(PLACE), "{} bytes", bytes.len());
            let claims = bytes.chunks(PLACE).map(|place| &place[..8]);
            return Ok(claims
                .filter(|claims| claims.iter().any(|byte| byte != "0x00"))
                .count());
        }
    }
    anyhow::bail!("the program has no table")
}

#[test]
fn connections_count_the_same_with_and_without_a_place_and_leave_none_behind() -> Result<()> {
    observed(|observer, _| {
        for times in 1..=2 {
            let open = talk(ETCD, MANY)?;
            let claimed = places_claimed(observer)?;
            ensure!(
                claimed > MANY && claimed < 2 * MANY,
                "{claimed} places for {MANY} connections"
            );
            drop(open);
            let made = (MANY * times).try_into()?;
            let round_trips = (MANY * ROUND_TRIPS * times).try_into()?;
            let start = Instant::now();
            while counted(observer, Side::Client)? != (made, made, round_trips)
                || counted(observer, Side::Server)?.1 != made
            {
                ensure!(
                    start.elapsed() < Duration::from_secs(10),
                    "{:?} and {:?} of {made} and {round_trips}",
                    counted(observer, Side::Client)?,
                    counted(observer, Side::Server)?
                );
                sleep(Duration::from_millis(20));
            }
            assert_eq!(places_claimed(observer)?, 0);
        }
        Ok(())
    })
}

#[test]
fn a_place_that_was_left_without_a_word_is_not_the_next_sockets() -> Result<()> {
    observed(|observer, cgroup| {
        let folder = tempfile::tempdir()?;
        // It takes away every callback but that for samples, which it sets for all sockets of the host.
        let other = OtherProgram::flagging(folder.path(), RTT_FLAG)?;
        let _attached = other.attach(cgroup.path(), true)?;
        drop(talk(ETCD, 50)?);
        let before = (
            counted(observer, Side::Client)?,
            counted(observer, Side::Server)?,
        );
        ensure!(
            before.0.2 > 0,
            "the other program takes the samples' callback too"
        );
        ensure!(
            before.0.1 == 0,
            "the other program leaves the end's callback"
        );
        let left = places_claimed(observer)?;
        ensure!(left > 50, "{left} places are left");

        // These get the memory of those, and their addresses.
        let open = talk(UNWATCHED, 200)?;
        let after = (
            counted(observer, Side::Client)?,
            counted(observer, Side::Server)?,
        );
        assert_eq!(after, before);
        ensure!(places_claimed(observer)? < left, "no address came again");
        drop(open);
        Ok(())
    })
}
