//! Tries, on a connection of this process to itself, whether the kernel hands over raw RTT samples.
//!
//! Versions do not tell: distributions backport.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use aya::Ebpf;
use aya::programs::{CgroupAttachMode, SockOps};
use probe_common::stats::{STATS, TRIAL_ANSWER_CELL, TRIAL_COOKIE_CELL, WITH_SAMPLE};

use super::attach;
use super::cgroup;
use super::error::AttachError;
use super::kernel::Kernel;
use super::load;
use super::mapped::MappedCells;
use super::socket_cookie;

const PROGRAM: &str = "joinprobe_trial";

/// How long the connection may take; it takes less than a millisecond.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often the answer is looked for.
const LOOK: Duration = Duration::from_millis(1);

/// Whether RTT callbacks carry the sample; or why that cannot be tried.
///
/// `elsewhere`: `directory` was chosen by the user, and this process need not be in it.
pub(super) fn run(
    ebpf: &mut Ebpf,
    directory: &File,
    elsewhere: bool,
    kernel: &Kernel,
) -> Result<bool, String> {
    let say = |error: AttachError| error.to_string();
    let stats = attach::mapped(ebpf, "STATS", 1, STATS).map_err(say)?;
    let program: &mut SockOps = attach::program(ebpf, PROGRAM).map_err(say)?;
    program
        .load()
        .map_err(|error| say(load::explain_program(error, kernel)))?;
    let root = if elsewhere {
        cgroup::open(None).ok()
    } else {
        None
    };
    let tried = match root
        .as_ref()
        .map(|(root, _)| try_below(program, root, &stats, kernel))
    {
        Some(Ok(answer)) => Ok(answer),
        _ => try_below(program, directory, &stats, kernel),
    };
    // Nothing needs it any more; that it stays loaded would do no harm either.
    if let Err(error) = program.unload() {
        log::debug!("the trial's program stays loaded: {error}");
    }
    tried
}

fn try_below(
    program: &mut SockOps,
    directory: &File,
    stats: &MappedCells,
    kernel: &Kernel,
) -> Result<bool, String> {
    let link = program
        .attach(directory, CgroupAttachMode::Single)
        .map_err(|error| load::explain_program(error, kernel).to_string())?;
    let answer = connect(stats);
    if let Err(error) = program.detach(link) {
        log::debug!("the trial's program stays attached: {error}");
    }
    match answer {
        Ok(0) => Err("the test connection over loopback gave no sample".to_owned()),
        Ok(answer) => Ok(answer == WITH_SAMPLE),
        Err(error) => Err(format!("the test connection over loopback failed: {error}")),
    }
}

/// Makes the connection, has one byte acknowledged and waits for the kernel side's answer; 0 if none came.
fn connect(stats: &MappedCells) -> io::Result<u64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .or_else(|_| TcpListener::bind((Ipv6Addr::LOCALHOST, 0)))?;
    let mut client = marked(&listener.local_addr()?, stats)?;
    let (mut server, _) = listener.accept()?;
    server.set_read_timeout(Some(PATIENCE))?;
    client.write_all(&[0])?;
    server.read_exact(&mut [0])?;
    // A peer that only reads may put off its acknowledgement.
    server.write_all(&[0])?;
    let start = Instant::now();
    loop {
        let answer = stats.load(TRIAL_ANSWER_CELL);
        if answer != 0 || start.elapsed() > PATIENCE {
            return Ok(answer);
        }
        std::thread::sleep(LOOK);
    }
}

/// Connects a socket that the kernel side knows by its cookie.
fn marked(address: &SocketAddr, stats: &MappedCells) -> io::Result<TcpStream> {
    use rustix::net::sockopt::set_socket_timeout;
    use rustix::net::{AddressFamily, SocketType, sockopt::Timeout};
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
    // It is also the limit of connect(): a packet filter may swallow what is sent over loopback.
    set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE))?;
    stats.store(TRIAL_COOKIE_CELL, socket_cookie(socket.as_fd())?);
    rustix::net::connect(&socket, address)?;
    Ok(TcpStream::from(socket))
}
