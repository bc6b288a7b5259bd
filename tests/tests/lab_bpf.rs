//! The lab's own BPF program is called, and its answer is on the wire.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};

use anyhow::Result;
use joinprobe_lab::bpf::{BpfObjects, Cgroup, OtherProgram, RWND_PACKETS};
use joinprobe_lab::link::DEVICE;
use joinprobe_lab::{Capture, Link, Namespace, scratch_dir, take_turn};

#[test]
fn another_program_answers_callbacks_in_its_cgroup() -> Result<()> {
    let Some(_turn) = take_turn(&["tcpdump", "bpftool"])? else {
        return Ok(());
    };
    let (client, server) = (Namespace::create()?, Namespace::create()?);
    let address: IpAddr = "10.9.0.1".parse()?;
    let _link = Link::between(&client, &server, 1)?;
    let to = SocketAddr::from((address, 2379));
    let _listener = server.enter(|| TcpListener::bind(to))??;
    let folder = scratch_dir()?;
    let program = OtherProgram::load(folder.path())?;
    let cgroup = Cgroup::enter()?;
    let capture = Capture::start(&client, DEVICE)?;
    let connect = || client.enter(|| TcpStream::connect(to));
    connect()??;
    let attached = program.attach(cgroup.path(), true)?;
    assert_eq!(cgroup.attached()?, [program.id()?]);
    connect()??;
    drop(attached);
    assert!(cgroup.attached()?.is_empty());
    connect()??;
    let recording = capture.stop()?;
    let windows: Vec<u32> = recording
        .flows()
        .iter()
        .map(|flow| flow.packets[0].segment.window.into())
        .collect();
    let answered = RWND_PACKETS * 1460;
    assert_eq!(windows[1], answered);
    assert!(
        windows[0] > answered && windows[2] > answered,
        "{windows:?}"
    );
    assert!(BpfObjects::of(std::process::id())?.is_empty());
    Ok(())
}
