//! Starts the command with everything it would have had without joinprobe.

use std::fs::File;
use std::io::{self, IsTerminal as _, pipe};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::process::Stdio;
use std::sync::{Arc, Weak};

use rustix::fs::fstat;
use rustix::process::Pid;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};
use tokio::process::{Child, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::tee::{self, Outlet, Stream, Traffic};
use crate::config::RunConfig;
use crate::secrecy::Before;

/// A running command.
pub(super) struct Started {
    pub(super) child: Child,
    /// Phases as they are announced; ends when the output does.
    pub(super) phases: UnboundedReceiver<String>,
    pub(super) traffic: Traffic,
    terminals: Vec<Terminal>,
}

impl Started {
    /// The real terminal's window has changed: so do those of the command.
    pub(super) fn resize(&self) {
        for terminal in &self.terminals {
            if let Err(error) = terminal.resize() {
                log::debug!("a terminal's size could not be passed on: {error}");
            }
        }
    }
}

/// A terminal that stands for a real one, as long as its output is passed on.
struct Terminal {
    real: OwnedFd,
    master: Weak<File>,
}

impl Terminal {
    fn resize(&self) -> io::Result<()> {
        if let Some(master) = self.master.upgrade() {
            tcsetwinsize(&*master, tcgetwinsize(&self.real)?)?;
        }
        Ok(())
    }
}

pub(super) fn start(config: &RunConfig, core: Option<&Before>) -> io::Result<Started> {
    let mut command = Command::new(config.program());
    command.args(config.arguments());
    let (sender, phases) = unbounded_channel();
    let traffic = Traffic::default();
    let mut terminals = Vec::new();
    if config.phases {
        tap(&mut command, &traffic, &sender, &mut terminals)?;
    }
    let child = command.spawn()?;
    let pid = child
        .id()
        .and_then(|pid| i32::try_from(pid).ok())
        .and_then(Pid::from_raw);
    if let (Some(pid), Some(core)) = (pid, core)
        && let Err(error) = core.restore_for(pid)
    {
        log::debug!("the command may not dump core: {error}");
    }
    // With `command` go our copies of the write ends: the output ends when the command's own copies do.
    drop(command);
    Ok(Started {
        child,
        phases,
        traffic,
        terminals,
    })
}

/// Reads along on standard output and error. Where both lead to the same place they stay one stream, so that their order
/// is kept.
fn tap(
    command: &mut Command,
    traffic: &Traffic,
    phases: &UnboundedSender<String>,
    terminals: &mut Vec<Terminal>,
) -> io::Result<()> {
    let (stdout, stderr) = (rustix::stdio::stdout(), rustix::stdio::stderr());
    let shared = same_place(stdout, stderr);
    let write_end = tapped(stdout, Stream::First, shared, traffic, phases, terminals)?;
    let error_end = if shared {
        write_end.try_clone()?
    } else {
        tapped(stderr, Stream::Second, true, traffic, phases, terminals)?
    };
    command
        .stdout(Stdio::from(write_end))
        .stderr(Stdio::from(error_end));
    Ok(())
}

fn same_place(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    match (fstat(one), fstat(other)) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    }
}

/// The end that the command writes to instead of `to`.
fn tapped(
    to: BorrowedFd<'_>,
    stream: Stream,
    is_stderr: bool,
    traffic: &Traffic,
    phases: &UnboundedSender<String>,
    terminals: &mut Vec<Terminal>,
) -> io::Result<OwnedFd> {
    let (read_end, write_end) = if to.is_terminal() {
        terminal_like(to)?
    } else {
        let (read_end, write_end) = pipe()?;
        (OwnedFd::from(read_end), OwnedFd::from(write_end))
    };
    let read_end = Arc::new(File::from(read_end));
    if to.is_terminal() {
        terminals.push(Terminal {
            real: to.try_clone_to_owned()?,
            master: Arc::downgrade(&read_end),
        });
    }
    let to = Outlet {
        file: File::from(to.try_clone_to_owned()?),
        is_stderr,
    };
    tee::start(read_end, to, stream, traffic.clone(), phases.clone())?;
    Ok(write_end)
}

/// A terminal of the same size that changes nothing of what is written: the real one does that.
fn terminal_like(real: BorrowedFd<'_>) -> io::Result<(OwnedFd, OwnedFd)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    let slave = rustix::fs::open(
        path,
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?;
    let mut settings = tcgetattr(&slave)?;
    settings.make_raw();
    tcsetattr(slave.as_fd(), OptionalActions::Now, &settings)?;
    if let Ok(size) = tcgetwinsize(real) {
        tcsetwinsize(&slave, size)?;
    }
    Ok((master, slave))
}
