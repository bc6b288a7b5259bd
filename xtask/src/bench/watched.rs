//! What watched connections pay.

use std::time::Duration;

use anyhow::Result;
use joinprobe_lab::etcd::{CLIENT_PORT, EtcdClient};
use joinprobe_lab::{Lab, Namespace};

use super::figure::{Figure, median};
use super::load::{Responses, Server, request_response};
use super::measured::Measured;
use super::{Bench, alternate};

/// Round trips on loopback, in one go.
const ROUND_TRIPS: usize = 20_000;
/// Puts to etcd, and as many gets, in one go.
const CALLS: usize = 60;
/// How often a round does that with and without, in turn: a machine's mood lasts longer than one go.
const PAIRS: u32 = 8;
/// The link to etcd: as within one region.
const LINK_RTT: Duration = Duration::from_millis(2);

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let mut figures = loopback(bench)?;
    figures.extend(etcd(bench)?);
    Ok(figures)
}

fn loopback(bench: &Bench) -> Result<Vec<Figure>> {
    let namespace = Namespace::create()?;
    let echo = Server::echo(&namespace, 2379)?;
    let load = || request_response(&namespace, echo.address, 1, ROUND_TRIPS);
    let mut rounds = Vec::new();
    for _ in 0..bench.rounds {
        rounds.push(alternate(PAIRS, load, || {
            let _watch = Measured::watch(&namespace, &bench.joinprobe, &[])?;
            load()
        })?);
    }
    echo.stop(&namespace);
    let of = |pick: fn(&Responses) -> f64| -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let medians = |side: fn(&(Responses, Responses)) -> &Responses| -> Vec<f64> {
            let of_round = |pairs: &Vec<(Responses, Responses)>| {
                let all: Vec<f64> = pairs.iter().map(|pair| pick(side(pair))).collect();
                median(&all)
            };
            rounds.iter().map(of_round).collect()
        };
        let (without, with) = (medians(|pair| &pair.0), medians(|pair| &pair.1));
        let ratios = with.iter().zip(&without).map(|(a, b)| a / b).collect();
        (without, with, ratios)
    };
    let (without, with, ratios) = of(|responses| responses.per_second);
    let (p99_without, p99_with, p99_ratios) = of(|responses| responses.p99_us);
    Ok(vec![
        Figure::new("round trips on loopback, without", "1/s", without),
        Figure::new("round trips on loopback, with watch", "1/s", with),
        Figure::new("round trips on loopback, with / without", "", ratios).at_least(0.98),
        Figure::new(
            "p99 of a round trip on loopback, without",
            "us",
            p99_without,
        ),
        Figure::new(
            "p99 of a round trip on loopback, with watch",
            "us",
            p99_with,
        ),
        Figure::new("p99 of a round trip, with / without", "", p99_ratios),
    ])
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
