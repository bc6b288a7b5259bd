//! What a watch takes: processor time while nothing happens, memory whatever happens.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use joinprobe_lab::{Lab, attempts, on_time, take_turn};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use rustix::process::Signal;

use crate::lines::{established, established_total, verdict};

/// Share of a core.
const MOST_CPU: f64 = 0.002;
const MOST_KIBIBYTES: u64 = 20 * 1024;

#[test]
fn nothing_to_do_takes_no_processor() -> Result<()> {
    idle(Duration::from_secs(20))
}

#[test]
#[ignore = "takes a minute; cargo xtask test --full"]
fn nothing_to_do_takes_no_processor_for_a_minute() -> Result<()> {
    idle(Duration::from_mins(1))
}

#[test]
fn memory_stays_low_after_many_connections() -> Result<()> {
    many(200, 5_000)
}

#[test]
#[ignore = "takes a minute; cargo xtask test --full"]
fn memory_stays_low_after_100_000_connections_from_2_000_addresses() -> Result<()> {
    many(2_000, 100_000)
}

fn idle(time: Duration) -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(0).start()?;
    let mut running = lab.start_joinprobe(["watch", "-ojson"])?;
    running.wait_ready()?;
    // Interrupts and a cold cache are on its account too, and a busy machine has more of both.
    attempts(3, || {
        let began = Instant::now();
        let before = processor_time(running.pid())?;
        sleep(time);
        let used = processor_time(running.pid())?.saturating_sub(before);
        let share = used.as_secs_f64() / began.elapsed().as_secs_f64();
        ensure!(!used.is_zero(), "it did nothing at all");
        on_time(share < MOST_CPU, || format!("{used:?}, {share}"))
    })?;
    let resident = resident_kibibytes(running.pid())?;
    ensure!(resident < MOST_KIBIBYTES, "{resident} KiB");
    running.signal(Signal::TERM)?;
    let finished = running.wait()?;
    ensure!(finished.code == Some(0), "{finished:?}");
    Ok(())
}

fn many(addresses: u32, connections: u32) -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(0).start()?;
    let namespace = &lab.joiner.namespace;
    let batch = lab.folder().join("addresses");
    let mut lines = String::new();
    for number in 0..addresses {
        writeln!(lines, "addr add {}/32 dev lo", address(number))?;
    }
    std::fs::write(&batch, lines)?;
    namespace.ip(&format!("-batch {}", batch.display()))?;
    let args = ["watch", "-ojson", "--interval=2s", "--listen=127.0.0.1:0"];
    let mut running = lab.start_joinprobe(args)?;
    running.wait_ready()?;
    namespace.enter(|| open_and_close(addresses, connections))??;
    // The next report has all of it.
    sleep(Duration::from_secs(3));
    let resident = resident_kibibytes(running.pid())?;
    running.signal(Signal::TERM)?;
    let finished = running.wait()?;
    ensure!(finished.code == Some(0), "{:?}", finished.stderr);
    let verdict = verdict(&finished.stdout)?;
    let rows = verdict["targets"].as_array().context("no targets")?;
    assert_eq!(established_total(&verdict), u64::from(connections));
    let accepted: u64 = rows
        .iter()
        .filter(|row| row["side"] == "server")
        .map(established)
        .sum();
    assert_eq!(accepted, u64::from(connections));
    // As many addresses as are told apart, and those of the rest in one row.
    let shared = rows.iter().find(|row| row["target"] == "other:2379");
    let shared = shared.context("no row of those that found no slot")?;
    assert_eq!(shared["overflowed"], verdict["observer"]["slots_exhausted"]);
    assert_eq!(rows.len(), 64 + 2);
    assert_eq!(verdict["observer"]["flows_untracked"], 0);
    ensure!(resident < MOST_KIBIBYTES, "{resident} KiB");
    Ok(())
}

fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 200, 0, 1)) + number)
}

/// Connects every address to others in turn.
fn open_and_close(addresses: u32, connections: u32) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 2379))?;
    for number in 0..connections {
        let client = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        let from = SocketAddr::from((address(number % addresses), 0));
        let to = SocketAddr::from((address((number + number / addresses + 1) % addresses), 2379));
        bind(&client, &from)?;
        connect(&client, &to)?;
        let (server, _) = listener.accept()?;
        drop(client);
        drop(server);
    }
    Ok(())
}

/// User and system time of all threads, to the nanosecond.
fn processor_time(pid: u32) -> Result<Duration> {
    let mut sum = Duration::ZERO;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        let time = text.split(' ').next().context("no time")?;
        sum += Duration::from_nanos(time.parse()?);
    }
    Ok(sum)
}

/// Resident memory. Of a debug build, which is built where no other is named, without the program's own pages: they are
/// several times those of what is shipped.
fn resident_kibibytes(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let all = kibibytes(line.context("no VmRSS")?)?;
    if std::env::var_os("JOINPROBE_BIN").is_some() {
        return Ok(all);
    }
    let program = std::fs::read_link(format!("/proc/{pid}/exe"))?;
    let program = program.to_string_lossy().into_owned();
    let mut own = 0;
    let mut of_program = false;
    for line in std::fs::read_to_string(format!("/proc/{pid}/smaps"))?.lines() {
        if let Some(resident) = line.strip_prefix("Rss:") {
            own += if of_program { kibibytes(resident)? } else { 0 };
        } else if line.contains(" r") || line.contains(" -") {
            of_program = line.ends_with(&program);
        }
    }
    Ok(all - own)
}

/// `   4711 kB`
fn kibibytes(text: &str) -> Result<u64> {
    let number = text.trim().strip_suffix(" kB").context("no unit")?;
    Ok(number.trim().parse()?)
}
