//! What watched connections pay.

use std::time::Duration;

use anyhow::Result;
use joinprobe_lab::Lab;
use joinprobe_lab::etcd::{CLIENT_PORT, EtcdClient};

use super::figure::{Figure, median};
use super::measured::Measured;
use super::{Bench, alternate, loopback};

/// Puts to etcd, and as many gets, in one go.
const CALLS: usize = 60;
/// How often a round does that with and without, in turn: a machine's mood lasts longer than one go.
const PAIRS: u32 = 8;
/// The link to etcd: as within one region.
const LINK_RTT: Duration = Duration::from_millis(2);

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let mut figures = loopback::measure(bench)?;
    figures.extend(etcd(bench)?);
    Ok(figures)
}

/// What calls took, in microseconds.
struct Calls {
    put: Vec<f64>,
    get: Vec<f64>,
}

fn etcd(bench: &Bench) -> Result<Vec<Figure>> {
    let lab = Lab::builder().members(3).start()?;
    lab.set_rtt(LINK_RTT);
    let joiner = &lab.joiner.namespace;
    // The first calls warm etcd up.
    calls(&lab)?;
    let mut rounds = Vec::new();
    for _ in 0..bench.rounds {
        let pairs = alternate(
            PAIRS,
            || calls(&lab),
            || {
                let _watch = Measured::watch(joiner, &bench.joinprobe, &[])?;
                calls(&lab)
            },
        )?;
        rounds.push(pairs);
    }
    let mut figures = Vec::new();
    for (name, pick) in [
        (
            "put",
            (|calls: &Calls| &calls.put[..]) as fn(&Calls) -> &[f64],
        ),
        ("linearizable get", |calls| &calls.get[..]),
    ] {
        // Of all calls of a round together: the median of few is coarse.
        let medians = |side: fn(&(Calls, Calls)) -> &Calls| -> Vec<f64> {
            let of_round = |pairs: &Vec<(Calls, Calls)>| {
                let all: Vec<f64> = pairs
                    .iter()
                    .flat_map(|pair| pick(side(pair)).iter().copied())
                    .collect();
                median(&all)
            };
            rounds.iter().map(of_round).collect()
        };
        let (without, with) = (medians(|pair| &pair.0), medians(|pair| &pair.1));
        let ratios = with.iter().zip(&without).map(|(a, b)| a / b).collect();
        figures.extend([
            Figure::new(format!("etcd {name}, without"), "us", without),
            Figure::new(format!("etcd {name}, with watch"), "us", with),
            Figure::new(format!("etcd {name}, with / without"), "", ratios).at_most(1.02),
        ]);
    }
    Ok(figures)
}

fn calls(lab: &Lab) -> Result<Calls> {
    let member = lab.member_nodes[0].at(CLIENT_PORT);
    let mut client = EtcdClient::connect(&lab.joiner.namespace, member, &lab.pki)?;
    let mut calls = Calls {
        put: Vec::with_capacity(CALLS),
        get: Vec::with_capacity(CALLS),
    };
    for _ in 0..CALLS {
        let put = client.put("joinprobe-bench", "value")?;
        calls.put.push(put.as_secs_f64() * 1e6);
        calls
            .get
            .push(client.get("joinprobe-bench")?.as_secs_f64() * 1e6);
    }
    Ok(calls)
}
