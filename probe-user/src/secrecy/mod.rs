//! Keeps what this process knows out of core dumps and other processes' hands.

use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, getrlimit, prlimit, set_dumpable_behavior, setrlimit,
};

/// The limit on core dumps as it was before [`protect`], for commands that joinprobe starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Before(Rlimit);

/// Forbids core dumps of this process and, to all but root, reading its memory (`PR_SET_DUMPABLE` 0, `RLIMIT_CORE` 0).
/// To be called before anything secret is read.
///
/// # Errors
/// The kernel refuses; no kernel is known to.
pub fn protect() -> Result<Before, Errno> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let before = getrlimit(Resource::Core);
    // Only the soft limit, which a child may raise again.
    setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: before.maximum,
        },
    )?;
    Ok(Before(before))
}

impl Before {
    /// Gives a started command the limit on core dumps that it would have had without joinprobe. Its memory can be
    /// dumped again since its execve(2), which resets `PR_SET_DUMPABLE`.
    ///
    /// # Errors
    /// The command is gone, or belongs to somebody else.
    pub fn restore_for(&self, command: Pid) -> Result<(), Errno> {
        prlimit(Some(command), Resource::Core, self.0).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn protects_this_process_and_frees_its_children() {
        let before = protect().unwrap();
        assert_eq!(getrlimit(Resource::Core).current, Some(0));
        assert_eq!(
            rustix::process::dumpable_behavior().unwrap(),
            DumpableBehavior::NotDumpable
        );
        let mut child = Command::new("sleep")
            .arg("60")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        before.restore_for(pid).unwrap();
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let core = limits
            .lines()
            .find(|line| line.starts_with("Max core file size"))
            .unwrap();
        let soft = core.split_whitespace().nth(4).unwrap();
        let expected = before
            .0
            .current
            .map_or("unlimited".to_owned(), |limit| limit.to_string());
        assert_eq!(soft, expected);
    }
}
