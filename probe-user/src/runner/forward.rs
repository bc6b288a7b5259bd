//! Signals on their way to the command.

use std::fs::File;
use std::io;

use rustix::process::{Pid, Signal, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use tokio::signal::unix::{self, SignalKind, signal};

/// The signals that are passed on.
pub(super) struct Signals {
    interrupt: unix::Signal,
    quit: unix::Signal,
    terminate: unix::Signal,
    user1: unix::Signal,
    user2: unix::Signal,
    window: unix::Signal,
    /// `None` where it was ignored at the start (nohup): a handler would end that for the command.
    hangup: Option<unix::Signal>,
}

impl Signals {
    /// From now on they no longer end joinprobe.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            terminate: signal(SignalKind::terminate())?,
            user1: signal(SignalKind::user_defined1())?,
            user2: signal(SignalKind::user_defined2())?,
            window: signal(SignalKind::window_change())?,
            hangup: (!is_ignored(Signal::HUP))
                .then(|| signal(SignalKind::hangup()))
                .transpose()?,
        })
    }

    /// Waits for the next. Nothing is lost when the returned future is dropped.
    pub(super) async fn next(&mut self) -> Signal {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Signal::INT,
            _ = self.quit.recv() => Signal::QUIT,
            _ = self.terminate.recv() => Signal::TERM,
            _ = self.user1.recv() => Signal::USR1,
            _ = self.user2.recv() => Signal::USR2,
            _ = self.window.recv() => Signal::WINCH,
            _ = hangup => Signal::HUP,
        }
    }

    /// Sends it to the command, unless its terminal has done so already.
    #[allow(
        clippy::unused_self,
        reason = "only who catches signals passes them on"
    )]
    pub(super) fn pass_on(&self, signal: Signal, command: Option<u32>) {
        if matches!(signal, Signal::INT | Signal::QUIT) && in_foreground() {
            return;
        }
        let pid = command
            .and_then(|pid| i32::try_from(pid).ok())
            .and_then(Pid::from_raw);
        if let Some(Err(error)) = pid.map(|pid| kill_process(pid, signal)) {
            log::debug!("{signal:?} could not be passed on: {error}");
        }
    }
}

/// Whether the keys of the controlling terminal signal this process group, which is the command's too.
fn in_foreground() -> bool {
    File::open("/dev/tty")
        .ok()
        .and_then(|terminal| tcgetpgrp(terminal).ok())
        .is_some_and(|group| group == getpgrp())
}

fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
}
