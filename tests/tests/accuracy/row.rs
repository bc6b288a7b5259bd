//! One scenario, measured.

use std::fmt::{self, Write as _};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use joinprobe_lab::Pair;
use joinprobe_lab::capture::Side;
use joinprobe_lab::pair::ECHO_PORT;
use probe_user::bpf::RttSource;

use crate::errors::Errors;
use crate::handshakes::{self, micros};
use crate::samples::{Seen, Watcher, follow};
use crate::scenario::Scenario;
use crate::traffic::Connection;

const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 1.0];

/// What came of a scenario.
pub(crate) struct Row {
    pub(crate) scenario: Scenario,
    pub(crate) handshakes: Errors,
    /// Of segments sent once.
    pub(crate) raw: Errors,
    pub(crate) rebuilt: Errors,
    /// Samples whose two sources differ.
    pub(crate) different: usize,
    /// Samples that the kernel side put aside as those of acknowledged retransmissions.
    pub(crate) of_retransmissions: u64,
    /// Those of the capture: acknowledgements that begin a round trip and are of something that was sent again.
    pub(crate) resent_acknowledged: usize,
    /// Samples that the capture cannot vouch for: something it covers was sent again.
    pub(crate) ambiguous: usize,
    /// Samples that came too fast to be read one by one.
    pub(crate) unread: u64,
    /// Segments sent again: by the kernel side, and by `TCP_INFO`.
    pub(crate) retransmits: (u64, u64),
    /// The largest relative error of a quantile of the histogram against the samples themselves.
    pub(crate) quantile_error: f64,
    /// How much later than intended the link delivered.
    pub(crate) late: Duration,
}

impl Row {
    pub(crate) fn measure(scenario: &Scenario) -> Result<Self> {
        let pair = Pair::start()?;
        for namespace in [&pair.client, &pair.server] {
            let value = if scenario.timestamps { "1" } else { "0" };
            namespace.sysctl("net.ipv4.tcp_timestamps", value)?;
        }
        let (mut raw, rebuilt) = pair.client.enter(|| {
            anyhow::Ok((
                Watcher::attach(RttSource::Raw)?,
                Watcher::attach(RttSource::Reconstructed)?,
            ))
        })??;
        pair.shape(scenario.shape());
        let echo = SocketAddr::new(pair.v4, ECHO_PORT);
        let work = || {
            pair.client.enter(|| {
                let counted = handshakes::connect(&mut raw.observer, echo, scenario.handshakes)?;
                let watched = watch(&pair, scenario, &raw, &rebuilt)?;
                anyhow::Ok((counted, watched))
            })?
        };
        let (recording, (counted, watched)) = pair.captured(work)?;
        let flows = recording.flows();
        let flow = flows
            .iter()
            // One of the handshakes may have had the same port.
            .find(|flow| (flow.client, flow.server) == watched.ends)
            .context("the connection is not in the capture")?;
        let acknowledgements = flow.acknowledgements(Side::Client);
        let counts = raw.observer.read_slot(raw.slot);
        let path = counts.distributions().path;
        let mut row = Self {
            scenario: *scenario,
            handshakes: handshakes::compare(&raw.observer, &counted, &recording)?,
            raw: Errors::default(),
            rebuilt: Errors::default(),
            different: 0,
            of_retransmissions: counts.counters().retransmitted_samples,
            resent_acknowledged: acknowledgements
                .iter()
                .filter(|ack| ack.first_of_round_trip && ack.rtt.is_none())
                .count(),
            ambiguous: 0,
            unread: path.len() - watched.raw.len() as u64,
            retransmits: watched.retransmits,
            quantile_error: quantile_error(&watched.raw, &path),
            late: pair.link.stats().late_mean(),
        };
        for sample in &watched.raw {
            let other = watched
                .rebuilt
                .binary_search_by_key(&sample.number, |seen| seen.number)
                .ok()
                .and_then(|index| watched.rebuilt.get(index))
                .map(|seen| seen.value);
            row.different += usize::from(other.is_some_and(|other| other != sample.value));
            let truth = sample
                .acknowledgement(&acknowledgements)
                .and_then(|ack| ack.rtt);
            let Some(truth) = truth else {
                row.ambiguous += 1;
                continue;
            };
            let truth = truth.as_secs_f64() * 1e6;
            row.raw.push(micros(sample.value.into()), truth);
            if let Some(other) = other {
                row.rebuilt.push(micros(other.into()), truth);
            }
        }
        Ok(row)
    }

    /// All rows, as docs/measurements.md shows them.
    pub(crate) fn table(rows: &[Self]) -> String {
        let mut table = "| RTT | jitter | loss each way | traffic | timestamps | handshakes: n, median and p99 error | \
             raw samples: n, median and p99 error, within 100 us + 1 % | reconstructed: n, within 100 us + 1 % | \
             of retransmissions, by the capture | ambiguous | unread | retransmits, by TCP_INFO | quantile error | link late by |\n"
            .to_owned();
        table += &"|---".repeat(14);
        table += "|\n";
        for row in rows {
            let _ = writeln!(table, "{row}");
        }
        table
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "| {} | {}, {:.0} us, {:.0} us | {}, {:.0} us, {:.0} us, {:.2} % | {}, {:.2} % | {}, {} | {} | {} | \
                 {}, {} | {:.2} % | {:.0} us |",
            self.scenario,
            self.handshakes.len(),
            self.handshakes.quantile(0.5),
            self.handshakes.quantile(0.99),
            self.raw.len(),
            self.raw.quantile(0.5),
            self.raw.quantile(0.99),
            100.0 * self.raw.share_within(100.0),
            self.rebuilt.len(),
            100.0 * self.rebuilt.share_within(100.0),
            self.of_retransmissions,
            self.resent_acknowledged,
            self.ambiguous,
            self.unread,
            self.retransmits.0,
            self.retransmits.1,
            100.0 * self.quantile_error,
            self.late.as_secs_f64() * 1e6
        )
    }
}

/// What was seen of the connection.
struct Watched {
    ends: (SocketAddr, SocketAddr),
    raw: Vec<Seen>,
    rebuilt: Vec<Seen>,
    retransmits: (u64, u64),
}

fn watch(pair: &Pair, scenario: &Scenario, raw: &Watcher, rebuilt: &Watcher) -> Result<Watched> {
    let mut connection = Connection::open(pair, scenario.traffic, [raw, rebuilt])?;
    let ends = (connection.client, connection.server);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let [raw_samples, rebuilt_samples] = [raw, rebuilt].map(|watcher| {
            let stop = &stop;
            scope.spawn(move || follow(&watcher.probes, watcher.slot, stop))
        });
        let ran = connection.run(scenario);
        let by_kernel = connection.retransmits(pair);
        let counters = raw.observer.read_slot(raw.slot).counters();
        drop(connection);
        stop.store(true, Ordering::Release);
        let join = |follower: thread::ScopedJoinHandle<'_, Vec<Seen>>| {
            follower
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        let (raw, rebuilt) = (join(raw_samples), join(rebuilt_samples));
        ran?;
        Ok(Watched {
            ends,
            raw,
            rebuilt,
            retransmits: (counters.retransmits + counters.syn_retransmits, by_kernel?),
        })
    })
}

/// Holds the histogram's quantiles against those of the samples, if all of them were read.
fn quantile_error(samples: &[Seen], histogram: &probe_user::histogram::Distribution) -> f64 {
    let mut values: Vec<u32> = samples.iter().map(|sample| sample.value).collect();
    values.sort_unstable();
    if values.len() as u64 != histogram.len() || values.is_empty() {
        return 0.0;
    }
    QUANTILES
        .iter()
        .map(|&quantile| {
            let rank = rank(quantile, values.len());
            let exact = micros(values.get(rank).copied().unwrap_or(0).into());
            let said = micros(histogram.value_at_quantile(quantile));
            (said - exact).abs() / exact.max(1.0)
        })
        .fold(0.0, f64::max)
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank within a test's samples"
)]
fn rank(quantile: f64, count: usize) -> usize {
    ((quantile * count as f64).ceil() as usize).clamp(1, count) - 1
}
