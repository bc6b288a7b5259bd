//! The disk below a member.

use std::process::Command;
use std::time::Duration;

use crate::programs::command;

/// How long a member's disk takes. The default is the disk that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Disk {
    /// How much longer every fsync and fdatasync takes.
    pub sync_delay: Duration,
}

impl Disk {
    /// A command that starts a program on this disk.
    ///
    /// The program is held in each call that waits for the disk, by strace: Go programs are static, so no library can
    /// be put before them. Only those calls are stopped at, so everything else runs at full speed, and the program is
    /// the command's own child: a signal reaches it and not its tracer.
    pub(super) fn command(self, program: &str) -> Command {
        let found = command(program);
        if self.sync_delay.is_zero() {
            return found;
        }
        let calls = "fsync,fdatasync";
        let micros = self.sync_delay.as_micros();
        let mut traced = command("strace");
        traced
            .args(["-f", "-D", "--seccomp-bpf", "-qqq", "-o", "/dev/null"])
            .args(["-e", &format!("trace={calls}")])
            .args(["-e", &format!("inject={calls}:delay_enter={micros}")])
            .arg(found.get_program());
        traced
    }
}
