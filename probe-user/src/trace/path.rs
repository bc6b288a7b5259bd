//! What the flows found, put together. Pure.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use super::flow::Flow;

/// One hop of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The TTL that ended there; 1 is the first router.
    pub ttl: u8,
    /// Who answered; `None` when nobody did.
    pub address: Option<IpAddr>,
    /// SYN to answer; the smallest of the path's flows.
    pub rtt: Option<Duration>,
}

/// How a path ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The target accepted the connection, which was closed.
    Established,
    /// The target, or a firewall in its name, refused by RST.
    Refused,
    /// This router or host said by ICMP that it does not pass the SYN on.
    Rejected(IpAddr),
    /// Nobody answered.
    Silence,
    /// The time was over.
    OutOfTime,
    /// This host could not send the SYN.
    Local(io::ErrorKind),
}

impl End {
    /// Whether the target answered.
    #[must_use]
    pub fn reached(self) -> bool {
        matches!(self, Self::Established | Self::Refused)
    }
}

/// One way to the target, and how many flows took it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Flows that took it.
    pub flows: u32,
    /// From the first hop on, silent ones included.
    pub hops: Vec<Hop>,
    /// How it ended.
    pub end: End,
}

/// Where a path gets longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The hop before; `None` for this host.
    pub from: Option<Hop>,
    /// The hop behind.
    pub to: Hop,
    /// RTT added between the two.
    pub added: Duration,
    /// RTT of the last hop that answered.
    pub total: Duration,
}

/// A trace's paths and what it cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Distinct paths, the most used first.
    pub paths: Vec<Path>,
    /// SYNs sent.
    pub syns: u32,
    /// Connections opened and closed.
    pub connections: u32,
}

impl Trace {
    pub(super) fn of(flows: Vec<Flow>) -> Self {
        let syns = flows.iter().map(|flow| flow.syns).sum();
        let established = |flow: &&Flow| flow.end == End::Established;
        let connections = flows.iter().filter(established).count();
        let mut paths: Vec<Path> = Vec::new();
        for flow in flows {
            match paths.iter_mut().find(|path| path.is_of(&flow)) {
                Some(path) => path.absorb(&flow),
                None => paths.push(Path {
                    flows: 1,
                    hops: flow.hops,
                    end: flow.end,
                }),
            }
        }
        paths.sort_by_key(|path| std::cmp::Reverse(path.flows));
        Self {
            paths,
            syns,
            connections: u32::try_from(connections).unwrap_or(u32::MAX),
        }
    }
}

impl Path {
    /// Whether the flow took this path, as far as can be told: a hop that kept silent once may be the same.
    fn is_of(&self, flow: &Flow) -> bool {
        let same = |(a, b): (&Hop, &Hop)| {
            a.address.is_none() || b.address.is_none() || a.address == b.address
        };
        self.end == flow.end
            && self.hops.len() == flow.hops.len()
            && self.hops.iter().zip(&flow.hops).all(same)
    }

    fn absorb(&mut self, flow: &Flow) {
        self.flows += 1;
        for (known, hop) in self.hops.iter_mut().zip(&flow.hops) {
            known.address = known.address.or(hop.address);
            known.rtt = match (known.rtt, hop.rtt) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
    }

    /// The last hop that answered.
    #[must_use]
    pub fn last(&self) -> Option<Hop> {
        let answered = |hop: &&Hop| hop.rtt.is_some();
        self.hops.iter().rev().find(answered).copied()
    }

    /// Where most of the time goes.
    ///
    /// A router may take its time to answer for itself and yet pass packets on at once, so a hop counts as no farther
    /// than any hop behind it.
    #[must_use]
    pub fn longest_step(&self) -> Option<Step> {
        let mut steps = Vec::new();
        let total = self.last()?.rtt?;
        let mut floor = total;
        let mut behind: Option<Hop> = None;
        for hop in self.hops.iter().rev() {
            let Some(rtt) = hop.rtt else { continue };
            let here = rtt.min(floor);
            if let Some(to) = behind {
                steps.push((Some(*hop), to, floor.saturating_sub(here)));
            }
            behind = Some(*hop);
            floor = here;
        }
        steps.push((None, behind?, floor));
        let (from, to, added) = steps.into_iter().max_by_key(|(_, _, added)| *added)?;
        Some(Step {
            from,
            to,
            added,
            total,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(hops: &[(u8, u64)]) -> Flow {
        let hops = hops.iter().enumerate().map(|(index, &(host, ms))| Hop {
            ttl: u8::try_from(index + 1).unwrap(),
            address: (host > 0).then(|| IpAddr::from([10, 0, 0, host])),
            rtt: (host > 0).then(|| Duration::from_millis(ms)),
        });
        Flow {
            hops: hops.collect(),
            end: End::Established,
            syns: 3,
        }
    }

    #[test]
    fn flows_of_one_path_are_one() {
        let trace = Trace::of(vec![
            flow(&[(1, 2), (2, 60), (3, 52)]),
            flow(&[(1, 1), (0, 0), (3, 53)]),
        ]);
        assert_eq!(trace.paths.len(), 1);
        assert_eq!((trace.syns, trace.connections), (6, 2));
        let rtts: Vec<_> = trace.paths[0].hops.iter().map(|hop| hop.rtt).collect();
        assert_eq!(rtts, [1, 60, 52].map(|ms| Some(Duration::from_millis(ms))));
    }

    #[test]
    fn another_router_is_another_path() {
        let trace = Trace::of(vec![
            flow(&[(1, 1), (2, 2), (9, 3)]),
            flow(&[(1, 1), (3, 2), (9, 3)]),
            flow(&[(1, 1), (3, 2), (9, 3)]),
        ]);
        assert_eq!(
            trace.paths.iter().map(|p| p.flows).collect::<Vec<_>>(),
            [2, 1]
        );
        // And so is another length.
        let trace = Trace::of(vec![
            flow(&[(1, 1), (9, 3)]),
            flow(&[(1, 1), (2, 1), (9, 3)]),
        ]);
        assert_eq!(trace.paths.len(), 2);
    }

    fn step(hops: &[(u8, u64)]) -> (Option<u8>, u8, u64) {
        let trace = Trace::of(vec![flow(hops)]);
        let step = trace.paths[0].longest_step().unwrap();
        let added = u64::try_from(step.added.as_millis()).unwrap();
        (step.from.map(|hop| hop.ttl), step.to.ttl, added)
    }

    #[test]
    fn the_longest_step_is_found() {
        assert_eq!(step(&[(1, 1), (2, 52), (3, 53)]), (Some(1), 2, 51));
        assert_eq!(step(&[(1, 40), (2, 41)]), (None, 1, 40));
        // Over a silent hop.
        assert_eq!(step(&[(1, 1), (0, 0), (3, 53)]), (Some(1), 3, 52));
        // The second router is slow to speak for itself: 2 ms it is not to blame for.
        assert_eq!(step(&[(1, 1), (2, 90), (3, 4), (4, 5)]), (Some(1), 2, 3));
    }

    #[test]
    fn nothing_answered_has_no_step() {
        let trace = Trace::of(vec![flow(&[(0, 0)])]);
        assert_eq!(trace.paths[0].longest_step(), None);
        assert_eq!(trace.paths[0].last(), None);
    }
}
