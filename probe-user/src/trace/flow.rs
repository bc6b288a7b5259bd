//! One flow: SYNs with one source port and growing TTL.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::Instant;

use super::path::{End, Hop};
use super::syn::{self, Answer, ORDINARY_TTL, Reply};

/// Longest way. The Internet's longest are shorter.
const MOST_HOPS: u8 = 30;

/// After so many hops without an answer one last SYN asks the target itself.
const MOST_SILENT: usize = 4;

/// What one flow found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    /// From the first hop on, silent ones included.
    pub(super) hops: Vec<Hop>,
    pub(super) end: End,
    /// SYNs sent.
    pub(super) syns: u32,
}

/// Follows one flow to its end.
pub(super) async fn follow(target: SocketAddr, patience: Duration, deadline: Instant) -> Flow {
    let mut walk = Walk {
        target,
        patience,
        deadline,
        from: None,
        flow: Flow {
            hops: Vec::new(),
            end: End::OutOfTime,
            syns: 0,
        },
    };
    match walk.run().await {
        Ok(end) => walk.flow.end = end,
        Err(error) => walk.flow.end = End::Local(error.kind()),
    }
    walk.trim();
    walk.flow
}

struct Walk {
    target: SocketAddr,
    patience: Duration,
    deadline: Instant,
    from: Option<SocketAddr>,
    flow: Flow,
}

impl Walk {
    async fn run(&mut self) -> io::Result<End> {
        for ttl in 1..=MOST_HOPS {
            let mut reply = self.send(ttl).await?;
            // A router that limits its errors may have had enough of us; the wait was a part of its second.
            if reply.answer == Answer::Silence && self.silent() == 0 && !self.late() {
                reply = self.send(ttl).await?;
            }
            if let Some(end) = self.note(ttl, reply) {
                return Ok(end);
            }
            if self.late() {
                return Ok(End::OutOfTime);
            }
            if self.silent() >= MOST_SILENT {
                break;
            }
        }
        // Routers that keep silent are not the target's silence.
        self.trim();
        let reply = self.send(ORDINARY_TTL).await?;
        Ok(self.note(ORDINARY_TTL, reply).unwrap_or(End::Silence))
    }

    async fn send(&mut self, ttl: u8) -> io::Result<Reply> {
        self.flow.syns += 1;
        let reply = syn::send(self.target, self.from, ttl, self.patience).await?;
        self.from = Some(reply.from);
        Ok(reply)
    }

    /// Adds a hop; the flow's end, if this is it.
    fn note(&mut self, ttl: u8, reply: Reply) -> Option<End> {
        let (address, end) = match reply.answer {
            Answer::Expired(router) => (Some(router), None),
            Answer::Rejected(router) => (Some(router), Some(End::Rejected(router))),
            Answer::Established => (Some(self.target.ip()), Some(End::Established)),
            Answer::Refused => (Some(self.target.ip()), Some(End::Refused)),
            Answer::Silence => (None, None),
        };
        self.flow.hops.push(Hop {
            ttl,
            address,
            rtt: address.is_some().then_some(reply.after),
        });
        end
    }

    fn late(&self) -> bool {
        Instant::now() + self.patience >= self.deadline
    }

    /// How many hops in a row have not answered.
    fn silent(&self) -> usize {
        let hops = self.flow.hops.iter().rev();
        hops.take_while(|hop| hop.address.is_none()).count()
    }

    /// Silence after the last answer is one question, not one per TTL.
    fn trim(&mut self) {
        let silent = self.silent();
        let kept = self.flow.hops.len() - silent + silent.min(1);
        self.flow.hops.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_target_on_this_host_is_one_hop_away() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        let flow = follow(target, Duration::from_secs(1), deadline).await;
        assert_eq!((flow.end, flow.syns), (End::Established, 1));
        assert_eq!(flow.hops[0].address, Some(target.ip()));
        // It was a connection, and it is closed.
        let (mut peer, _) = listener.accept().unwrap();
        assert_eq!(io::Read::read(&mut peer, &mut [0]).unwrap(), 0);
    }
}
