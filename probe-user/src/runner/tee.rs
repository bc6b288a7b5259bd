//! Passes a command's output on, byte for byte, and reads along.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;

use tokio::sync::mpsc::UnboundedSender;

use super::phase::Scanner;
use crate::watch::privilege;

/// As much as a pipe holds.
const CHUNK: usize = 64 * 1024;

/// What all streams have passed on.
#[derive(Clone, Debug, Default)]
pub(super) struct Traffic(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    bytes: AtomicU64,
    writing: AtomicU32,
    announced: AtomicBool,
    /// What the command last wrote to where standard error leads did not end its line.
    mid_line: AtomicBool,
}

impl Traffic {
    /// Bytes read so far.
    pub(super) fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Ends the line that the command has begun on standard error, so that what is written there next stands by itself.
    pub(super) fn end_line(&self) {
        if self.0.mid_line.swap(false, Ordering::Relaxed) {
            // With standard error closed there is nobody to read it.
            let _ = io::stderr().write_all(b"\n");
        }
    }

    /// Whether something that was read is not yet written: its reader is slow, and nothing may be lost.
    pub(super) fn is_writing(&self) -> bool {
        self.0.writing.load(Ordering::Relaxed) > 0
    }
}

/// Which of a command's streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// Standard output, or both in one: its announcements count.
    First,
    /// Standard error apart from standard output. Between two pipes there is no order, so its announcements count only
    /// while standard output has made none.
    Second,
}

/// Where a stream leads.
pub(super) struct Outlet {
    pub(super) file: File,
    /// It is where standard error leads.
    pub(super) is_stderr: bool,
}

/// Starts a thread that copies `from` to `to` until either ends. When the reader of `to` goes, `from` is closed, so that
/// the command learns of it as it would have without us. What cannot be written for other reasons is lost, and said.
pub(super) fn start(
    from: Arc<File>,
    to: Outlet,
    stream: Stream,
    traffic: Traffic,
    phases: UnboundedSender<String>,
) -> io::Result<()> {
    let Outlet {
        mut file,
        is_stderr,
    } = to;
    let copy = move || {
        privilege::drop_all();
        let mut scanner = Scanner::default();
        let mut chunk = vec![0; CHUNK];
        let mut lost = false;
        loop {
            let length = match (&*from).read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // A terminal whose last writer has gone says EIO.
                Ok(0) | Err(_) => return,
                Ok(length) => length,
            };
            let bytes = chunk.get(..length).unwrap_or_default();
            traffic.0.writing.fetch_add(1, Ordering::Relaxed);
            traffic.0.bytes.fetch_add(length as u64, Ordering::Relaxed);
            // The phase begins before anybody can read of it.
            scanner.feed(bytes, |phase| {
                match stream {
                    Stream::First => traffic.0.announced.store(true, Ordering::Relaxed),
                    Stream::Second if traffic.0.announced.load(Ordering::Relaxed) => return,
                    Stream::Second => {}
                }
                let _ = phases.send(phase.to_owned());
            });
            let written = file.write_all(bytes);
            if is_stderr {
                let mid_line = bytes.last().is_some_and(|last| *last != b'\n');
                traffic.0.mid_line.store(mid_line, Ordering::Relaxed);
            }
            traffic.0.writing.fetch_sub(1, Ordering::Relaxed);
            match written {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    log::info!("the command's output cannot be passed on: {error}");
                    return;
                }
                // A full disk, as a rule: no reason to end a join in the middle.
                Err(error) => {
                    if !std::mem::replace(&mut lost, true) {
                        log::warn!(
                            "some of the command's output is lost, because it cannot be written to {}: {error}; the command \
                             goes on, so make room or send its output elsewhere",
                            if is_stderr {
                                "standard error"
                            } else {
                                "standard output"
                            }
                        );
                    }
                }
            }
        }
    };
    thread::Builder::new()
        .name("tee".to_owned())
        .stack_size(128 * 1024)
        .spawn(copy)
        .map(|_| ())
}
