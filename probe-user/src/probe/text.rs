//! Words that several sentences share.

use std::io;
use std::time::Duration;

use rustix::io::Errno;

use crate::target::Role;

/// What answers there, after "no" or "the".
pub(super) fn service(role: Role) -> &'static str {
    match role {
        Role::EtcdClient => "etcd",
        Role::EtcdPeer => "etcd peer",
        Role::ApiServer => "API server",
    }
}

/// `1.3 s` or `12 ms`.
pub(super) fn span(duration: Duration) -> String {
    if duration >= Duration::from_secs(1) {
        format!("{:.1} s", duration.as_secs_f64())
    } else {
        format!("{} ms", duration.as_millis())
    }
}

/// The system's words for an error, without its number.
pub(super) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

/// What to do about an error that this host, not the network, is to blame for.
pub(super) fn local_remedy(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE) => "raise the limit on open files",
        Some(Errno::NOBUFS | Errno::NOMEM) => "free some memory",
        Some(Errno::AFNOSUPPORT) => "the kernel has that address family disabled",
        Some(Errno::PERM | Errno::ACCESS) => "a sandbox or security policy forbids it",
        _ => "check this host's network settings",
    }
}

/// The first line of text a server sent, fit to be shown: printable, and not long.
pub(super) fn first_line(bytes: &[u8]) -> String {
    const LONGEST: usize = 120;
    let text = String::from_utf8_lossy(bytes);
    text.trim_start()
        .chars()
        .take_while(|character| !matches!(character, '\r' | '\n'))
        .map(|character| {
            if character.is_control() {
                '\u{fffd}'
            } else {
                character
            }
        })
        .take(LONGEST)
        .collect()
}
