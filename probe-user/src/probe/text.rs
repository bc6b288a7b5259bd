//! Words that several sentences share.

use std::io;
use std::time::Duration;

use rustix::io::Errno;

use crate::target::{Role, Target};

/// What answers there, after "no" or "the".
pub(super) fn service(role: Role) -> &'static str {
    match role {
        Role::EtcdClient => "etcd",
        Role::EtcdPeer => "etcd peer",
        Role::ApiServer => "API server",
    }
}

/// Host and port as a Host header or an `:authority` has them: what the user wrote, without a zone, which means nothing
/// elsewhere (RFC 6874 section 1).
pub(super) fn authority(target: &Target) -> String {
    let spec = &target.spec;
    match spec.host.split_once('%') {
        Some((address, _zone)) => format!("[{address}]:{}", spec.port),
        None => spec.to_string(),
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

/// The first line of text a server sent, fit to be shown: printable, and not long. What is left out shows as `…`.
pub(super) fn first_line(bytes: &[u8]) -> String {
    const LONGEST: usize = 120;
    let text = String::from_utf8_lossy(bytes);
    let line = text
        .trim_start()
        .split(['\r', '\n'])
        .next()
        .unwrap_or_default();
    let mut shown: String = line
        .chars()
        .take(LONGEST)
        .map(|character| {
            if character.is_control() {
                '\u{fffd}'
            } else {
                character
            }
        })
        .collect();
    if line.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

/// Like [`first_line`], of words of which no more than `kept` bytes were kept: a line they end within is not whole.
pub(super) fn first_words(bytes: &[u8], kept: usize) -> String {
    let mut shown = first_line(bytes);
    let whole = bytes.len() < kept
        || bytes
            .trim_ascii_start()
            .iter()
            .any(|byte| matches!(byte, b'\r' | b'\n'));
    if !whole && !shown.ends_with('…') {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::parse;

    #[test]
    fn an_authority_has_no_zone() {
        for (written, expected) in [
            ("10.0.0.1:2379", "10.0.0.1:2379"),
            ("[fd00::1]:2379", "[fd00::1]:2379"),
            ("[fe80::1%eth0]:2379", "[fe80::1]:2379"),
            ("etcd-1.example:2379", "etcd-1.example:2379"),
        ] {
            let spec = parse(Role::EtcdClient, written).unwrap();
            let target = Target {
                spec,
                address: None,
            };
            assert_eq!(authority(&target), expected);
        }
    }

    #[test]
    fn foreign_text_is_made_fit_to_show() {
        assert_eq!(first_line(b"\r\n  SSH-2.0\r\nmore"), "SSH-2.0");
        assert_eq!(first_line(b"a\x1b[31mb\xff"), "a\u{fffd}[31mb\u{fffd}");
        assert_eq!(first_line(&[b'x'; 120]), "x".repeat(120));
        assert_eq!(first_line(&[b'x'; 500]), format!("{}…", "x".repeat(120)));
    }

    #[test]
    fn words_that_were_not_kept_are_owned_up_to() {
        assert_eq!(first_words(b"SSH-2.0", 64), "SSH-2.0");
        assert_eq!(first_words(b"SSH-2", 5), "SSH-2…");
        assert_eq!(first_words(b"SSH\r\nmo", 8), "SSH");
        assert_eq!(
            first_words(&[b'x'; 200], 200),
            format!("{}…", "x".repeat(120))
        );
    }
}
