//! What the observer costs others, and what it leaves behind.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use joinprobe_lab::bpf::{
    Attached, BpfObjects, Cgroup, OtherProgram, RWND_PACKETS, Statistics, run_count,
};
use joinprobe_lab::link::DEVICE;
use joinprobe_lab::{Capture, Link, Namespace, attempts, on_time, scratch_dir, take_turn};
use probe_common::endpoint::{Role, Side};
use probe_user::bpf::{AttachError, Observer, ObserverConfig, unsent_and_unacked};

/// Names the cgroup to a process of this test that only attaches and waits.
const CHILD: &str = "JOINPROBE_TEST_ATTACH";

#[test]
fn nothing_is_left_after_a_kill() -> Result<()> {
    let Some(_turn) = take_turn(&["bpftool"])? else {
        return Ok(());
    };
    let cgroup = Cgroup::enter()?;
    let mut child = attach_in_child(Command::new(std::env::current_exe()?), cgroup.path())?;
    let attached = wait_until(&mut child, || cgroup.attached().map(|ids| !ids.is_empty()));
    let objects = BpfObjects::of(child.id());
    child.kill()?;
    child.wait()?;
    attached?;
    let objects = objects?;
    ensure!(!objects.programs.is_empty(), "{objects:?}");
    ensure!(!objects.maps.is_empty() && !objects.links.is_empty());
    // The kernel frees maps after a grace period.
    let start = Instant::now();
    while !objects.alive().is_empty() {
        ensure!(
            start.elapsed() < Duration::from_secs(10),
            "still there: {:?}",
            objects.alive()
        );
        sleep(Duration::from_millis(100));
    }
    assert!(cgroup.attached()?.is_empty());
    Ok(())
}

#[test]
fn attaching_keeps_little_memory() -> Result<()> {
    let Some(_turn) = take_turn(&["bpftool"])? else {
        return Ok(());
    };
    let cgroup = Cgroup::enter()?;
    let mut command = Command::new(std::env::current_exe()?);
    // As on the main thread, where joinprobe attaches: glibc keeps what is free at the end of other threads' memory.
    command.env("MALLOC_ARENA_MAX", "1");
    let mut child = attach_in_child(command, cgroup.path())?;
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().context("no output")?);
    while !line.contains("attached") && output.read_line(&mut line)? > 0 {}
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
    child.kill()?;
    child.wait()?;
    let status = status?;
    // Without the program's own pages, which are more in a debug build.
    let anonymous: u64 = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:")?.strip_suffix("kB"))
        .context("no RssAnon")?
        .trim()
        .parse()?;
    assert!(anonymous < 6 << 10, "{anonymous} KiB");
    Ok(())
}

#[test]
fn two_capabilities_are_enough() -> Result<()> {
    let Some(_turn) = take_turn(&["bpftool", "setpriv"])? else {
        return Ok(());
    };
    let cgroup = Cgroup::enter()?;
    let mut child = attach_in_child(with_capabilities("-all,+bpf,+net_admin")?, cgroup.path())?;
    let attached = wait_until(&mut child, || cgroup.attached().map(|ids| !ids.is_empty()));
    child.kill()?;
    child.wait()?;
    attached
}

#[test]
fn what_is_missing_is_named() -> Result<()> {
    let Some(_turn) = take_turn(&["setpriv"])? else {
        return Ok(());
    };
    let cgroup = Cgroup::enter()?;
    for (capabilities, missing) in [
        ("-all", "CAP_BPF and CAP_NET_ADMIN are missing"),
        ("-all,+bpf", "CAP_NET_ADMIN is missing"),
        ("-all,+net_admin", "CAP_BPF is missing"),
    ] {
        let child = attach_in_child(with_capabilities(capabilities)?, cgroup.path())?;
        let output = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains(missing), "{capabilities}: {said}");
    }
    Ok(())
}

#[test]
fn a_hook_that_is_taken_is_named() -> Result<()> {
    let Some(_turn) = take_turn(&["bpftool"])? else {
        return Ok(());
    };
    let folder = scratch_dir()?;
    let program = OtherProgram::load(folder.path())?;
    let cgroup = Cgroup::enter()?;
    let _attached: Attached<'_> = program.attach(cgroup.path(), false)?;
    match Observer::attach(&config(cgroup.path())) {
        Err(error @ AttachError::HookTaken { .. }) => {
            let text = error.to_string();
            assert!(
                text.contains(&format!("{} (lab_other)", program.id()?)),
                "{text}"
            );
            Ok(())
        }
        Err(error) => Err(error.into()),
        Ok(_) => anyhow::bail!("attached beside a program that does not share"),
    }
}

#[test]
fn another_program_keeps_its_callbacks_and_answers() -> Result<()> {
    let Some(_turn) = take_turn(&["bpftool", "tcpdump"])? else {
        return Ok(());
    };
    let (client, server) = (Namespace::create()?, Namespace::create()?);
    let _link = Link::between(&client, &server, 1)?;
    let listener = server.enter(|| TcpListener::bind("10.9.0.1:2379"))??;
    let folder = scratch_dir()?;
    let other = OtherProgram::load(folder.path())?;
    let cgroup = Cgroup::enter()?;
    for other_first in [true, false] {
        let capture = Capture::start(&client, DEVICE)?;
        let attach_observer = || client.enter(|| Observer::attach(&config(cgroup.path())));
        let (observer, _attached) = if other_first {
            let attached = other.attach(cgroup.path(), true)?;
            (attach_observer()??, attached)
        } else {
            let observer = attach_observer()??;
            (observer, other.attach(cgroup.path(), true)?)
        };
        let mut stream = client.enter(|| TcpStream::connect("10.9.0.1:2379"))??;
        let (mut accepted, _) = listener.accept()?;
        stream.write_all(b"chunk")?;
        accepted.read_exact(&mut [0; 5])?;
        acknowledged(&stream)?;
        drop((stream, accepted));
        let recording = capture.stop()?;
        // The other program's answer is on the wire, and we measured.
        let window = u32::from(recording.flows()[0].packets[0].segment.window);
        assert_eq!(window, RWND_PACKETS * 1460, "other first: {other_first}");
        let endpoints = observer.endpoints()?;
        let (endpoint, counts) = endpoints.first().context("nothing seen")?;
        assert_eq!(endpoint.side, Side::Client);
        assert_eq!(counts.distributions().handshake.len(), 1);
        assert_eq!(counts.distributions().segment.len(), 1);
    }
    Ok(())
}

#[test]
fn a_transfer_on_another_port_costs_no_run_per_segment() -> Result<()> {
    let Some(_turn) = take_turn(&["bpftool"])? else {
        return Ok(());
    };
    let namespace = Namespace::create()?;
    let cgroup = Cgroup::enter()?;
    namespace.enter(|| {
        let _observer = Observer::attach(&config(cgroup.path()))?;
        let program = BpfObjects::of(std::process::id())?.program_named("joinprobe_ops")?;
        let listener = TcpListener::bind("127.0.0.1:9999")?;
        attempts(3, || {
            let _statistics = Statistics::on()?;
            let counted = run_count(program)?;
            let mut client = TcpStream::connect("127.0.0.1:9999")?;
            let (mut server, _) = listener.accept()?;
            let before = run_count(program)?;
            let reader = thread::spawn(move || std::io::copy(&mut server, &mut std::io::sink()));
            let block = vec![7; 1 << 20];
            for _ in 0..64 {
                client.write_all(&block)?;
            }
            let after = run_count(program)?;
            drop(client);
            let received = reader
                .join()
                .map_err(|_| anyhow::anyhow!("reader died"))??;
            assert_eq!(received, 64 << 20);
            assert_eq!(after, before);
            // Who else measures on this host may have turned the statistics off.
            drop(TcpStream::connect("127.0.0.1:9999")?);
            listener.accept()?;
            let on = before > counted && run_count(program)? > after;
            on_time(on, || "connections are not counted".to_owned())
        })
    })?
}

#[test]
fn without_a_mounted_hierarchy_a_private_one_serves() -> Result<()> {
    let Some(_turn) = take_turn(&["bpftool", "unshare"])? else {
        return Ok(());
    };
    // A mount namespace in which the hierarchy is mounted nowhere, as on hosts with cgroup v1 only.
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private", "sh", "-c"])
        .arg("umount -a -l -t cgroup2 && exec \"$0\" \"$@\"")
        .arg(std::env::current_exe()?);
    let mut child = attach_in_child(command, Path::new(""))?;
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().context("no output")?);
    while !line.contains("attached") && output.read_line(&mut line)? > 0 {}
    let objects = BpfObjects::of(child.id());
    child.kill()?;
    child.wait()?;
    assert!(line.contains("attached Private"), "{line}");
    assert!(!objects?.links.is_empty());
    Ok(())
}

/// Not a test of its own: what the tests above start as a process.
#[test]
fn attach_and_wait() {
    if let Some(cgroup) = std::env::var_os(CHILD) {
        match Observer::attach(&config(Path::new(&cgroup))) {
            Ok(observer) => {
                println!(
                    "attached {:?} {:?}",
                    observer.hierarchy(),
                    observer.limitations()
                );
                sleep(Duration::from_mins(1));
            }
            Err(error) => println!("{error}"),
        }
    }
}

/// Waits until the peer has acknowledged everything.
fn acknowledged(stream: &TcpStream) -> Result<()> {
    let start = Instant::now();
    while unsent_and_unacked(stream.as_fd())? > 0 {
        ensure!(
            start.elapsed() < Duration::from_secs(10),
            "not acknowledged"
        );
        sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn attach_in_child(mut command: Command, cgroup: &Path) -> Result<Child> {
    Ok(command
        .args(["--exact", "attach_and_wait", "--nocapture"])
        .env(CHILD, cgroup)
        .stdout(Stdio::piped())
        .spawn()?)
}

/// This program, to be run with no more than these capabilities.
fn with_capabilities(capabilities: &str) -> Result<Command> {
    let mut command = Command::new("setpriv");
    command
        .args(["--inh-caps", capabilities, "--bounding-set", capabilities])
        .arg(std::env::current_exe()?);
    Ok(command)
}

fn config(cgroup: &Path) -> ObserverConfig {
    ObserverConfig {
        ports: vec![(2379, Role::EtcdClient)],
        cgroup: (cgroup != Path::new("")).then(|| cgroup.to_owned()),
        events: true,
        ..ObserverConfig::default()
    }
}

fn wait_until(child: &mut Child, condition: impl Fn() -> Result<bool>) -> Result<()> {
    let start = Instant::now();
    while !condition()? {
        if let Some(status) = child.try_wait()? {
            let mut said = String::new();
            if let Some(stdout) = &mut child.stdout {
                stdout.read_to_string(&mut said)?;
            }
            anyhow::bail!("the process ended with {status}: {said}");
        }
        ensure!(start.elapsed() < Duration::from_secs(30), "it never came");
        sleep(Duration::from_millis(50));
    }
    Ok(())
}
