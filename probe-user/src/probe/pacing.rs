//! Writes a ClientHello in pieces, so that one connection yields many network RTT samples.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::connect::Marked;
use super::context::Pacing;
use super::wire::Wire;
use crate::bpf::unsent_and_unacked;

/// Server time that is left aside for what follows the last chunk, besides its round trips: comfortable, and the least
/// that the chunks up to [`Pacing::MIN_CHUNKS`] leave.
const SERVER_RESERVE: Duration = Duration::from_millis(500);
const LEAST_RESERVE: Duration = Duration::from_millis(100);
/// Round trips after the last chunk: TLS, its confirmation, the request. Closing has a reserve of its own.
const ROUND_TRIPS_AFTER: u32 = 3;
/// How long a sample is waited for once its segment is acknowledged: `snd_una` moves a moment before the kernel side's
/// program has run, on another CPU.
const SAMPLE_SLACK: Duration = Duration::from_millis(2);

/// The target's `path` samples, in order, as the kernel side reports them.
pub(super) struct PathWatch<'a> {
    marked: &'a Marked<'a>,
    counted: u64,
    sequence: Vec<u32>,
}

impl<'a> PathWatch<'a> {
    pub(super) fn new(marked: &'a Marked<'a>) -> Self {
        Self {
            marked,
            counted: marked.marker.path_progress().0,
            sequence: Vec::new(),
        }
    }

    /// Takes the newest sample if there is one; `true` if so. Samples that came between two calls are in the histogram
    /// but not in the sequence.
    fn absorb(&mut self) -> bool {
        let (count, last) = self.marked.marker.path_progress();
        let news = count > self.counted;
        if news {
            self.counted = count;
            self.sequence.push(last);
        }
        news
    }

    fn end(&mut self) {
        self.absorb();
        self.marked.marker.end_pacing(self.marked.cookie);
    }

    /// The samples, with the last, which may come later than its segment's acknowledgement: a reconstructed sample is
    /// complete when the next segment arrives.
    pub(super) fn into_sequence(mut self) -> Vec<u32> {
        self.absorb();
        self.sequence
    }
}

/// What became of the ClientHello.
pub(super) struct Sent {
    /// Chunks written, the last included.
    pub(super) chunks: u32,
    /// When the last was written.
    pub(super) last: Instant,
    /// Why the rest was not.
    pub(super) interrupted: Option<Interruption>,
}

/// What can come between two chunks.
#[derive(Debug)]
pub(super) enum Interruption {
    /// The server spoke before it had heard everything.
    Spoke,
    /// The server closed its side.
    Ended,
    /// The connection broke.
    Broken(io::Error),
    /// A chunk was not acknowledged in time.
    Stalled(Duration),
}

/// Writes `hello`, each chunk but the last acknowledged before the next, until `until` at the latest.
///
/// `round_trip` is the RTT as far as it is known; every acknowledged chunk corrects it. The number of chunks is what
/// [`Pacing`] asks for or as many as the time allows, at least [`Pacing::MIN_CHUNKS`] unless not even those would leave
/// time for an answer.
pub(super) async fn send(
    hello: &[u8],
    wire: &Wire,
    path: &mut PathWatch<'_>,
    pacing: &Pacing<'_>,
    until: Instant,
    mut round_trip: Duration,
) -> Sent {
    let length = hello.len();
    let most = usize::try_from(pacing.max_chunks.clamp(1, Pacing::MAX_CHUNKS))
        .unwrap_or(1)
        .min(length.max(1));
    let mut chunks = 0;
    let mut at = 0;
    let stopped = |chunks, interruption| Sent {
        chunks,
        last: Instant::now(),
        interrupted: Some(interruption),
    };
    for index in 1..most {
        if !worth_another(pacing, chunks, &path.sequence, until, round_trip) {
            break;
        }
        let end = length * index / most;
        let sent = Instant::now();
        if let Err(error) = wire.send(&hello[at..end]).await {
            path.end();
            return stopped(chunks, Interruption::Broken(error));
        }
        chunks += 1;
        at = end;
        match acknowledged(wire, sent, until).await {
            Ok(took) => round_trip = took,
            Err(interruption) => {
                path.end();
                return stopped(chunks, interruption);
            }
        }
        if !path.absorb() {
            sleep(SAMPLE_SLACK).await;
            path.absorb();
        }
    }
    path.end();
    let last = Instant::now();
    let interrupted = wire
        .send(&hello[at..])
        .await
        .err()
        .map(Interruption::Broken);
    Sent {
        chunks: chunks + 1,
        last,
        interrupted,
    }
}

/// Whether the next chunk is to be a paced one, rather than all the rest.
fn worth_another(
    pacing: &Pacing<'_>,
    chunks: u32,
    sequence: &[u32],
    until: Instant,
    round_trip: Duration,
) -> bool {
    let needed = round_trip.max(Pacing::INTERVAL) + ROUND_TRIPS_AFTER * round_trip;
    let left = until.saturating_duration_since(Instant::now());
    if chunks + 1 < Pacing::MIN_CHUNKS {
        return needed + LEAST_RESERVE <= left;
    }
    needed + SERVER_RESERVE <= left && !pacing.enough.is_some_and(|enough| enough(sequence))
}

/// Waits until everything written is acknowledged and the interval is over; says when the acknowledgement was seen,
/// counted from `sent`.
async fn acknowledged(
    wire: &Wire,
    sent: Instant,
    until: Instant,
) -> Result<Duration, Interruption> {
    let mut seen = None;
    let mut byte = [0];
    loop {
        let waited = sent.elapsed();
        if seen.is_none()
            && unsent_and_unacked(wire.socket.as_fd()).map_err(Interruption::Broken)? == 0
        {
            seen = Some(waited);
        }
        let rest = match seen {
            Some(took) if waited >= Pacing::INTERVAL => return Ok(took),
            Some(_) => Pacing::INTERVAL.saturating_sub(waited),
            None => pause(waited),
        };
        if Instant::now() >= until {
            return Err(Interruption::Stalled(waited));
        }
        tokio::select! {
            () = sleep(rest) => {}
            peeked = wire.socket.peek(&mut byte) => return Err(match peeked {
                Ok(0) => Interruption::Ended,
                Ok(_) => Interruption::Spoke,
                Err(error) => Interruption::Broken(error),
            }),
        }
    }
}

/// How long to wait before looking again: about 3 % of what was waited so far, so that a look costs little however long
/// the path is. The RTT itself is the kernel's; this only decides when the next chunk goes.
fn pause(waited: Duration) -> Duration {
    (waited / 32).clamp(Duration::from_millis(1), Duration::from_millis(8))
}
