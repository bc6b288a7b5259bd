//! Connections that were there before the observer on kernels that cannot adopt them: looked at once per report interval.
//!
//! The kernel's list of sockets has the smoothed RTT and the smallest of the last minutes, no single samples.

mod listing;
mod watched;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;

use probe_common::endpoint::{Role, Side};

use super::config::{ObserverConfig, Scope};
use super::features::Features;
use super::namespaces;
use super::observer::Endpoint;
use super::syscall::netns_cookie;
use super::tcp_info::ConnectionInfo;
use crate::histogram;
use crate::measure::Sampled;
use listing::{Connection, End, Listing};
use watched::Watched;

/// Connections that are sampled at most; each takes about 150 bytes here.
const MOST: usize = 16_384;

/// A socket: its place among the namespaces, and its cookie (which was unique only within one, in old kernels).
type SocketKey = (usize, u64);

struct Known {
    endpoint: Endpoint,
    then: ConnectionInfo,
    /// Number of the last look at which it was there.
    seen: u64,
}

/// Samples the connections that were there when it was made.
pub(super) struct Sampler {
    questions: Vec<(u16, End)>,
    /// One for each namespace in which there are any.
    listings: Vec<(usize, Listing)>,
    known: HashMap<SocketKey, Known>,
    counts: HashMap<Endpoint, Sampled>,
    looks: u64,
    left_out: usize,
}

impl Sampler {
    /// Notes which connections on watched ports are there. To be called before the kernel side observes any.
    ///
    /// # Errors
    /// The kernel does not list its sockets.
    pub(super) fn start(config: &ObserverConfig, features: &Features) -> io::Result<Self> {
        let watched = Watched::new(config);
        let mut sampler = Self {
            questions: watched.questions(),
            listings: Vec::new(),
            known: HashMap::new(),
            counts: HashMap::new(),
            looks: 0,
            left_out: 0,
        };
        let limit = usize::try_from(config.targets()).unwrap_or(usize::MAX);
        let mut places = vec![(Listing::open()?, netns_cookie()?)];
        // Not `features.scope`: where the kernel side cannot keep to one namespace, this can.
        if config.scope == Scope::AllNamespaces {
            for namespace in namespaces::others().open {
                let opened = namespaces::inside(&namespace, || (Listing::open(), netns_cookie()));
                if let Ok((Ok(listing), Ok(cookie))) = opened {
                    places.push((listing, cookie));
                }
            }
        }
        for (place, (mut listing, cookie)) in places.into_iter().enumerate() {
            let netns = features.netns_key(cookie);
            let before = sampler.known.len();
            for (port, end) in sampler.questions.clone() {
                listing.each(port, end, |connection| {
                    if let Some((role, side)) =
                        watched.role_of(connection.remote, connection.local_port)
                    {
                        sampler.note(place, &connection, (role, side, netns), limit);
                    }
                })?;
            }
            if sampler.known.len() > before {
                sampler.listings.push((place, listing));
            }
        }
        Ok(sampler)
    }

    fn note(
        &mut self,
        place: usize,
        connection: &Connection,
        (role, side, netns): (Role, Side, u64),
        limit: usize,
    ) {
        let key = (place, connection.cookie);
        if self.known.contains_key(&key) {
            return;
        }
        if self.known.len() >= MOST {
            self.left_out += 1;
            return;
        }
        let endpoint = self.endpoint(role, side, connection.remote, netns, limit);
        let counts = self.counts.entry(endpoint).or_default();
        counts.found += 1;
        counts.open += 1;
        let known = Known {
            endpoint,
            then: connection.info,
            seen: 0,
        };
        self.known.insert(key, known);
    }

    /// As in the kernel side: the server side of a role is one endpoint, and so are the addresses beyond the limit.
    fn endpoint(
        &self,
        role: Role,
        side: Side,
        remote: SocketAddr,
        netns: u64,
        limit: usize,
    ) -> Endpoint {
        let shared = Endpoint {
            role,
            side,
            remote: None,
            netns: 0,
            process: None,
        };
        let own = Endpoint {
            remote: Some(remote),
            netns,
            ..shared
        };
        let room = || {
            self.counts
                .keys()
                .filter(|known| known.remote.is_some())
                .count()
                < limit
        };
        if side == Side::Client && (self.counts.contains_key(&own) || room()) {
            own
        } else {
            shared
        }
    }

    /// How many connections are sampled, and how many are not because they are too many.
    pub(super) fn connections(&self) -> (usize, usize) {
        (self.known.len(), self.left_out)
    }

    /// Looks at what is left of the connections.
    pub(super) fn look(&mut self) {
        if self.known.is_empty() {
            return;
        }
        self.looks += 1;
        let (known, counts, look) = (&mut self.known, &mut self.counts, self.looks);
        for (place, listing) in &mut self.listings {
            for &(port, end) in &self.questions {
                let listed = listing.each(port, end, |connection| {
                    if let Some(known) = known.get_mut(&(*place, connection.cookie))
                        && known.seen != look
                    {
                        known.seen = look;
                        let counts = counts.entry(known.endpoint).or_default();
                        take_in(counts, &known.then, &connection.info);
                        known.then = connection.info;
                    }
                });
                if let Err(error) = listed {
                    log::warn!(
                        "connections that were there before are not sampled this time: {error}"
                    );
                    return;
                }
            }
        }
        known.retain(|_, known| {
            let open = known.seen == look;
            if !open && let Some(counts) = counts.get_mut(&known.endpoint) {
                counts.open = counts.open.saturating_sub(1);
            }
            open
        });
    }

    /// Everything sampled so far.
    pub(super) fn counts(&self) -> &HashMap<Endpoint, Sampled> {
        &self.counts
    }
}

fn take_in(counts: &mut Sampled, then: &ConnectionInfo, now: &ConnectionInfo) {
    counts.retransmits += u64::from(now.total_retrans.wrapping_sub(then.total_retrans));
    counts.segments_out += u64::from(now.data_segs_out.wrapping_sub(then.data_segs_out));
    // Without a new acknowledgement the estimates are those of the last look.
    if now.bytes_acked == then.bytes_acked {
        return;
    }
    if now.rtt_us != 0 {
        histogram::record(&mut counts.smoothed, u64::from(now.rtt_us), 1);
    }
    if now.min_rtt_us != u32::MAX {
        histogram::record(&mut counts.minimum, u64::from(now.min_rtt_us), 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_on_which_nothing_was_acknowledged_gives_no_sample() {
        let then = ConnectionInfo {
            rtt_us: 10_000,
            min_rtt_us: u32::MAX,
            total_retrans: u32::MAX,
            bytes_acked: 5,
            data_segs_out: 7,
        };
        let mut counts = Sampled::default();
        take_in(&mut counts, &then, &then);
        assert_eq!(counts, Sampled::default());
        let now = ConnectionInfo {
            total_retrans: 1,
            bytes_acked: 6,
            data_segs_out: 9,
            ..then
        };
        take_in(&mut counts, &then, &now);
        assert_eq!((counts.smoothed.len(), counts.minimum.len()), (1, 0));
        assert_eq!((counts.retransmits, counts.segments_out), (2, 2));
    }
}
