//! What a preflight leaves in the kernel, and what it does to others there: nothing.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use joinprobe_lab::bpf::{BpfObjects, Cgroup, OtherProgram, RWND_PACKETS, Statistics, run_count};
use joinprobe_lab::etcd::CLIENT_PORT;
use joinprobe_lab::lab::Running;
use joinprobe_lab::link::DEVICE;
use joinprobe_lab::report::Report;
use joinprobe_lab::{Capture, Impairment, Lab, attempts, on_time, take_turn};
use rustix::process::Signal;

fn lab() -> Result<Lab> {
    Lab::builder()
        .spare_nodes(1)
        .shape(Impairment::half_of_rtt(Duration::from_millis(10)))
        .start()
}

/// A further target that never answers keeps a run busy until its timeout.
fn dead_target(lab: &Lab) -> String {
    let node = &lab.spare_nodes[0];
    lab.link.set_dead(node.v4.into(), true);
    node.at(CLIENT_PORT).to_string()
}

/// The usual preflight as JSON, on the test's own cgroup.
fn args(lab: &Lab, cgroup: &Cgroup, more: &[&str]) -> Vec<OsString> {
    let mut args = lab.preflight_args();
    args.extend([
        "-o".into(),
        "json".into(),
        "--cgroup".into(),
        cgroup.path().into(),
    ]);
    args.extend(more.iter().map(Into::into));
    args
}

/// Waits until it has attached its program; its id and everything it holds.
fn attached(run: &Running, cgroup: &Cgroup, others: &[u32]) -> Result<(u32, BpfObjects)> {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        if let Some(id) = cgroup
            .attached()?
            .into_iter()
            .find(|id| !others.contains(id))
        {
            return Ok((id, BpfObjects::of(run.pid())?));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    anyhow::bail!("no program was attached within twenty seconds")
}

fn check_gone(objects: &BpfObjects, cgroup: &Cgroup) -> Result<()> {
    // The kernel frees them a grace period after the last reference.
    let deadline = Instant::now() + Duration::from_secs(20);
    while !objects.alive().is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(objects.alive(), BpfObjects::default());
    assert_eq!(cgroup.attached()?, Vec::<u32>::new());
    Ok(())
}

#[test]
fn nothing_stays_behind_however_it_ends() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd", "bpftool"])? else {
        return Ok(());
    };
    let lab = lab()?;
    let cgroup = Cgroup::enter()?;
    let dead = dead_target(&lab);
    for signal in [Signal::KILL, Signal::INT, Signal::TERM] {
        let run = lab.start_joinprobe(args(&lab, &cgroup, &["--etcd", &dead]))?;
        let (program, objects) = attached(&run, &cgroup, &[])?;
        assert!(objects.programs.contains(&program), "{objects:?}");
        assert!(
            !objects.maps.is_empty() && !objects.links.is_empty(),
            "{objects:?}"
        );
        let signalled = Instant::now();
        run.signal(signal)?;
        let ended = run.wait()?;
        // Half of the time that the dead target would take.
        let took = signalled.elapsed();
        assert!(took < Duration::from_secs(5), "{signal:?}: {ended:?}");
        check_gone(&objects, &cgroup)?;
    }
    // It ends by itself, but not before it was looked at.
    lab.set_rtt(Duration::from_millis(80));
    let run = lab.start_joinprobe(args(&lab, &cgroup, &[]))?;
    let (_, objects) = attached(&run, &cgroup, &[])?;
    let ended = run.wait()?;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    check_gone(&objects, &cgroup)
}

#[test]
fn another_program_keeps_its_callbacks_and_its_replies() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd", "tcpdump", "bpftool"])? else {
        return Ok(());
    };
    let lab = lab()?;
    let cgroup = Cgroup::enter()?;
    let other = OtherProgram::load(lab.folder())?;
    let id = other.id()?;
    let member = lab.member_nodes[0].at(CLIENT_PORT);
    for other_first in [true, false] {
        let before = other_first
            .then(|| other.attach(cgroup.path(), true))
            .transpose()?;
        let capture = Capture::start(&lab.joiner.namespace, DEVICE)?;
        // Long enough to connect beside it.
        let dead = dead_target(&lab);
        let run =
            lab.start_joinprobe(args(&lab, &cgroup, &["--etcd", &dead, "--timeout", "8s"]))?;
        attached(&run, &cgroup, &[id])?;
        let after = (!other_first)
            .then(|| other.attach(cgroup.path(), true))
            .transpose()?;
        let beside = lab
            .joiner
            .namespace
            .enter(|| TcpStream::connect(member))??;
        let port = beside.local_addr()?.port();
        let report = run.wait()?.report()?;
        drop((before, after));
        let recording = capture.stop()?;
        let flows = recording.flows_to(member);
        let ours = flows
            .iter()
            .find(|flow| flow.client.port() == port)
            .context("our own connection")?;
        let answered = RWND_PACKETS * 1460;
        assert_eq!(
            u32::from(ours.packets[0].segment.window),
            answered,
            "other first: {other_first}"
        );
        let target = report.target(member)?;
        assert_eq!(target.number("/handshake/count")?, 1, "{target:?}");
        // It attached before these were taken, beside the other program.
        assert!(target.number("/path/count")? >= 5, "{target:?}");
    }
    Ok(())
}

#[test]
fn bulk_on_another_port_does_not_run_the_program() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd", "bpftool"])? else {
        return Ok(());
    };
    // The first spare node is the dead target.
    let lab = Lab::builder().spare_nodes(2).start()?;
    let cgroup = Cgroup::enter()?;
    let node = &lab.spare_nodes[1];
    let to: SocketAddr = node.at(9999);
    let listener = node.namespace.enter(|| TcpListener::bind(to))??;
    let sink = std::thread::spawn(move || {
        let mut stream = listener.accept()?.0;
        std::io::copy(&mut stream, &mut std::io::sink())
    });
    let _statistics = Statistics::on()?;
    let dead = dead_target(&lab);
    // Its only target is dead, so that only SYN timeouts run the program; those of one second are far apart.
    let run = lab.start_joinprobe(
        ["preflight", "--etcd", &dead, "--timeout", "8s", "--cgroup"]
            .map(OsString::from)
            .into_iter()
            .chain([cgroup.path().into()]),
    )?;
    let (program, _) = attached(&run, &cgroup, &[])?;
    let mut stream = lab.joiner.namespace.enter(|| TcpStream::connect(to))??;
    let chunk = vec![7; 64 * 1024];
    let mut unchanged = 0;
    // Windows without a SYN timeout in them: most of ten.
    for _ in 0..10 {
        let before = run_count(program)?;
        for _ in 0..32 {
            stream.write_all(&chunk)?;
        }
        unchanged += u32::from(run_count(program)? == before);
    }
    assert!(run_count(program)? > 0, "statistics are on");
    let counted = run_count(program)?;
    stream.shutdown(std::net::Shutdown::Write)?;
    let _ = stream.read(&mut [0; 1]);
    let received = sink.join().ok().context("the receiver failed")??;
    assert_eq!(received, 10 * 32 * 64 * 1024);
    println!("{unchanged} of 10 windows of 2 MB without a run; {counted} runs in all");
    // The slower the machine, the more of them have a SYN timeout; a run per segment spares none.
    assert!(unchanged >= 3, "{unchanged}");
    assert!(counted < 60, "{counted} runs for 20 MB");
    Ok(())
}

#[test]
fn two_at_once_do_not_disturb_each_other() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd"])? else {
        return Ok(());
    };
    let lab = lab()?;
    let mut args = lab.preflight_args();
    args.extend(["-o".into(), "json".into()]);
    attempts(3, || {
        let first = lab.start_joinprobe(args.clone())?;
        std::thread::sleep(Duration::from_millis(150));
        let second = lab.start_joinprobe(args.clone())?;
        for run in [first.wait()?, second.wait()?] {
            assert_eq!(run.code, Some(0), "{run:?}");
            let report: Report = run.report()?;
            for target in report.targets() {
                assert_eq!(target.number("/handshake/count")?, 1, "{target:?}");
                assert_eq!(target.number("/connections/established")?, 1, "{target:?}");
                let (count, median) = (
                    target.number("/path/count")?,
                    target.number("/path/p50_us")?,
                );
                assert!(median >= 9_900, "{target:?}");
                on_time(count >= 14 && median < 14_000, || {
                    format!("{count} samples, median {median} us")
                })?;
            }
        }
        Ok(())
    })
}
