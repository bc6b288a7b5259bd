//! What watched connections pay.

use std::time::Duration;

use anyhow::Result;
use joinprobe_lab::etcd::{CLIENT_PORT, EtcdClient};
use joinprobe_lab::{Lab, Namespace};

use super::Bench;
use super::figure::{Figure, median};
use super::load::{Responses, Server, request_response};
use super::measured::Measured;

/// Round trips of each round on loopback.
const ROUND_TRIPS: usize = 40_000;
/// Puts, and as many gets, of each round.
const CALLS: usize = 200;
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
    let pairs = bench.alternate(load, || {
        let _watch = Measured::watch(&namespace, &bench.joinprobe, &[])?;
        load()
    })?;
    echo.stop(&namespace);
    let of = |pick: fn(&Responses) -> f64| -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let without: Vec<f64> = pairs.iter().map(|pair| pick(&pair.0)).collect();
        let with: Vec<f64> = pairs.iter().map(|pair| pick(&pair.1)).collect();
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

/// Medians of a round's calls, in microseconds.
struct Calls {
    put: f64,
    get: f64,
}

fn etcd(bench: &Bench) -> Result<Vec<Figure>> {
    let lab = Lab::builder().members(3).start()?;
    lab.set_rtt(LINK_RTT);
    let joiner = &lab.joiner.namespace;
    let load = || calls(&lab);
    let pairs = bench.alternate(load, || {
        let _watch = Measured::watch(joiner, &bench.joinprobe, &[])?;
        load()
    })?;
    let mut figures = Vec::new();
    for (name, pick) in [
        ("put", (|calls: &Calls| calls.put) as fn(&Calls) -> f64),
        ("linearizable get", |calls| calls.get),
    ] {
        let without: Vec<f64> = pairs.iter().map(|pair| pick(&pair.0)).collect();
        let with: Vec<f64> = pairs.iter().map(|pair| pick(&pair.1)).collect();
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
    let (mut puts, mut gets) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        puts.push(client.put("joinprobe-bench", "value")?.as_secs_f64() * 1e6);
        gets.push(client.get("joinprobe-bench")?.as_secs_f64() * 1e6);
    }
    Ok(Calls {
        put: median(&puts),
        get: median(&gets),
    })
}
