//! What is tried.

use std::fmt;
use std::time::Duration;

use joinprobe_lab::Impairment;

/// The bottleneck of bulk transfers, in bits per second, and its queue: no more than a capture can keep up with.
const BULK_RATE: u64 = 40_000_000;
const BULK_QUEUE: Duration = Duration::from_millis(20);

/// What is sent over the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// A request, and the next one when it is answered.
    Requests,
    /// Messages that nobody answers, so that the peer delays its acknowledgements.
    OneWay,
    /// As much as goes.
    Bulk,
}

/// A path, and what is sent over it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) rtt: Duration,
    pub(crate) jitter: Duration,
    /// Each way.
    pub(crate) loss: f64,
    pub(crate) traffic: Traffic,
    /// TCP timestamps.
    pub(crate) timestamps: bool,
    /// How long it is sent.
    pub(crate) length: Duration,
    /// Connections for the handshake.
    pub(crate) handshakes: u32,
}

impl Scenario {
    fn new(rtt_us: u64, traffic: Traffic) -> Self {
        Self {
            rtt: Duration::from_micros(rtt_us),
            jitter: Duration::ZERO,
            loss: 0.0,
            traffic,
            timestamps: true,
            length: Duration::from_secs(2),
            handshakes: 40,
        }
    }

    /// The link's settings, each way.
    pub(crate) fn shape(&self) -> Impairment {
        let path = Impairment::half_of_rtt(self.rtt)
            .with_jitter(self.jitter)
            .with_loss(self.loss);
        match self.traffic {
            Traffic::Bulk => path.with_rate(BULK_RATE, BULK_QUEUE),
            Traffic::Requests | Traffic::OneWay => path,
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let traffic = match self.traffic {
            Traffic::Requests => "requests",
            Traffic::OneWay => "one-way",
            Traffic::Bulk => "bulk",
        };
        write!(
            f,
            "{:?} | {:?} | {} % | {traffic} | {}",
            self.rtt,
            self.jitter,
            100.0 * self.loss,
            if self.timestamps { "on" } else { "off" }
        )
    }
}

/// A few of each kind, for every run of the tests.
pub(crate) fn selection() -> Vec<Scenario> {
    let with = |rtt, traffic| Scenario::new(rtt, traffic);
    vec![
        with(200, Traffic::Requests),
        Scenario {
            jitter: Duration::from_millis(2),
            ..with(10_000, Traffic::Requests)
        },
        with(10_000, Traffic::OneWay),
        with(10_000, Traffic::Bulk),
        Scenario {
            loss: 0.02,
            length: Duration::from_secs(4),
            ..with(20_000, Traffic::Requests)
        },
        Scenario {
            loss: 0.02,
            timestamps: false,
            length: Duration::from_secs(4),
            ..with(20_000, Traffic::Bulk)
        },
    ]
}

/// The whole range.
pub(crate) fn sweep() -> Vec<Scenario> {
    let mut all = Vec::new();
    let thorough = |scenario| Scenario {
        length: Duration::from_secs(5),
        handshakes: 100,
        ..scenario
    };
    for rtt in [200, 1_000, 10_000, 50_000, 100_000, 300_000] {
        for traffic in [Traffic::Requests, Traffic::OneWay, Traffic::Bulk] {
            let plain = thorough(Scenario::new(rtt, traffic));
            all.push(plain);
            all.push(Scenario {
                jitter: plain.rtt / 5,
                ..plain
            });
        }
    }
    for rtt in [200, 10_000, 100_000] {
        for traffic in [Traffic::Requests, Traffic::Bulk] {
            for timestamps in [true, false] {
                for loss in [0.01, 0.05, 0.1] {
                    all.push(Scenario {
                        loss,
                        timestamps,
                        length: Duration::from_secs(10),
                        ..thorough(Scenario::new(rtt, traffic))
                    });
                }
            }
            all.push(Scenario {
                timestamps: false,
                ..thorough(Scenario::new(rtt, traffic))
            });
        }
    }
    all
}
