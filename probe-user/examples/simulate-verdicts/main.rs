//! Simulates preflights at known true medians and prints what verdicts they come to: the table of docs/verdicts.md.

mod preflight;
mod samples;

use std::process::ExitCode;
use std::thread;

use clap::Parser;
use preflight::Plan;
use probe_user::verdict::{LimitId, Limits, Policy, Verdict};
use samples::Path;

/// Simulates preflights and prints what verdicts they come to.
#[derive(Debug, Parser)]
struct Arguments {
    /// Preflights per point.
    #[arg(long, default_value_t = 10_000)]
    preflights: u32,
    /// Targets per preflight.
    #[arg(long, default_value_t = 4)]
    targets: u32,
    /// Path samples per connection.
    #[arg(long, default_value_t = 15)]
    samples: usize,
    /// Connections per target, at most.
    #[arg(long, default_value_t = 3)]
    max_connections: u32,
    /// Confidence of a preflight, percent.
    #[arg(long, default_value_t = 95.0)]
    confidence: f64,
    /// AR(1) coefficients of the Gaussian under the samples.
    #[arg(long, value_delimiter = ',', default_value = "0,0.7")]
    rho: Vec<f64>,
    /// True medians, as multiples of the fail limit.
    #[arg(long, value_delimiter = ',', default_value = "0.5,0.8,1,1.25,2")]
    medians: Vec<f64>,
    /// Seed of the first preflight; the same seed gives the same table.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Fail when the table misses what docs/verdicts.md promises.
    #[arg(long)]
    check: bool,
}

/// Sums over the preflights of one point.
#[derive(Debug, Default)]
struct Tally {
    preflights: u32,
    fail: u32,
    pass: u32,
    inconclusive: u32,
    five_pings_fail: u32,
    targets: u32,
    targets_fail: u32,
    targets_pass: u32,
    more_connections: u32,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.preflights += other.preflights;
        self.fail += other.fail;
        self.pass += other.pass;
        self.inconclusive += other.inconclusive;
        self.five_pings_fail += other.five_pings_fail;
        self.targets += other.targets;
        self.targets_fail += other.targets_fail;
        self.targets_pass += other.targets_pass;
        self.more_connections += other.more_connections;
    }
}

fn simulate(
    arguments: &Arguments,
    plan: &Plan,
    rho: f64,
    ratio: f64,
    range: std::ops::Range<u32>,
) -> Tally {
    let limit = plan.limits.get(LimitId::EtcdRttFail).value;
    #[allow(clippy::cast_precision_loss, reason = "a limit in microseconds")]
    let median = limit as f64 * ratio;
    let mut tally = Tally::default();
    for preflight in range {
        let mut paths: Vec<Path> = (0..plan.targets)
            .map(|target| {
                let seed = arguments.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)
                    ^ (u64::from(preflight) << 32)
                    ^ (u64::from(target) << 8)
                    ^ ratio.to_bits().rotate_left(17)
                    ^ rho.to_bits();
                Path::new(median, rho, seed)
            })
            .collect();
        let outcome = preflight::run(plan, &mut paths, limit);
        tally.preflights += 1;
        match outcome.verdict {
            Verdict::Fail => tally.fail += 1,
            Verdict::Inconclusive => tally.inconclusive += 1,
            Verdict::Pass | Verdict::Warn => tally.pass += 1,
        }
        tally.five_pings_fail += u32::from(outcome.five_pings_fail);
        for (verdict, connections) in outcome.targets {
            tally.targets += 1;
            tally.targets_fail += u32::from(verdict == Verdict::Fail);
            tally.targets_pass += u32::from(verdict <= Verdict::Warn);
            tally.more_connections += u32::from(connections > 1);
        }
    }
    tally
}

fn plan(arguments: &Arguments) -> Plan {
    Plan {
        limits: Limits::default(),
        policy: Policy {
            confidence: arguments.confidence / 100.0,
            looks: arguments.max_connections,
            targets: arguments.targets,
        },
        targets: arguments.targets,
        samples: arguments.samples,
    }
}

fn percent(count: u32, all: u32) -> f64 {
    100.0 * f64::from(count) / f64::from(all.max(1))
}

/// What docs/verdicts.md promises and this point misses.
fn missed(rho: f64, ratio: f64, tally: &Tally) -> Option<String> {
    let at = |wanted: f64| (ratio - wanted).abs() < 1e-9;
    let (what, share, most) = if at(0.8) {
        (
            "preflights failed",
            percent(tally.fail, tally.preflights),
            1.0,
        )
    } else if at(1.25) {
        (
            "preflights passed",
            percent(tally.pass, tally.preflights),
            1.0,
        )
    } else if rho == 0.0 && (at(0.5) || at(2.0)) {
        (
            "targets needed more than one connection",
            percent(tally.more_connections, tally.targets),
            20.0,
        )
    } else {
        return None;
    };
    (share >= most).then(|| format!("rho {rho}, {ratio} x: {share:.2} % of the {what}"))
}

#[allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the table is this program's result, and what it misses its complaint"
)]
fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let plan = plan(&arguments);
    println!(
        "| samples | true median | fail | pass | inconclusive | target: fail | target: pass | more than one connection | five pings: fail |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut misses = Vec::new();
    for &rho in &arguments.rho {
        for &ratio in &arguments.medians {
            let half = arguments.preflights / 2;
            let mut tally = thread::scope(|scope| {
                let other = scope.spawn(|| simulate(&arguments, &plan, rho, ratio, 0..half));
                let mut tally = simulate(&arguments, &plan, rho, ratio, half..arguments.preflights);
                if let Ok(other) = other.join() {
                    tally.add(&other);
                }
                tally
            });
            tally.preflights = tally.preflights.max(1);
            let of = |count: u32, all: u32| format!("{:.2} %", percent(count, all));
            misses.extend(missed(rho, ratio, &tally));
            println!(
                "| rho {rho} | {ratio} x | {} | {} | {} | {} | {} | {} | {} |",
                of(tally.fail, tally.preflights),
                of(tally.pass, tally.preflights),
                of(tally.inconclusive, tally.preflights),
                of(tally.targets_fail, tally.targets),
                of(tally.targets_pass, tally.targets),
                of(tally.more_connections, tally.targets),
                of(tally.five_pings_fail, tally.preflights),
            );
        }
    }
    if !arguments.check || misses.is_empty() {
        return ExitCode::SUCCESS;
    }
    for miss in misses {
        eprintln!("missed: {miss}");
    }
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole table is made by `cargo xtask simulate-verdicts --check`, which `cargo xtask test --full` runs.
    #[test]
    fn a_few_preflights_keep_what_the_table_promises() {
        let arguments = Arguments::parse_from([""]);
        let plan = plan(&arguments);
        for rho in [0.0, 0.7] {
            for ratio in [0.5, 0.8, 1.25, 2.0] {
                let tally = simulate(&arguments, &plan, rho, ratio, 0..200);
                assert_eq!(tally.preflights, 200);
                assert_eq!(missed(rho, ratio, &tally), None, "{tally:?}");
            }
        }
    }

    #[test]
    fn a_broken_promise_is_seen() {
        let tally = Tally {
            preflights: 100,
            fail: 1,
            pass: 1,
            targets: 400,
            more_connections: 80,
            ..Tally::default()
        };
        for (rho, ratio) in [(0.0, 0.8), (0.7, 0.8), (0.7, 1.25), (0.0, 0.5), (0.0, 2.0)] {
            assert!(missed(rho, ratio, &tally).is_some(), "rho {rho}, {ratio} x");
        }
        assert_eq!(missed(0.7, 0.5, &tally), None);
    }
}
