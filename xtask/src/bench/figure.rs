//! One measured figure, its goal, and how figures are printed.

use std::borrow::Cow;
use std::io::Write;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// What a figure has to reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

/// A figure: the value of every round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Figure {
    name: String,
    unit: Cow<'static, str>,
    rounds: Vec<f64>,
    median: f64,
    goal: Option<Goal>,
}

impl Figure {
    /// A figure from its rounds; at least one.
    pub(super) fn new(name: impl Into<String>, unit: &'static str, rounds: Vec<f64>) -> Self {
        let median = median(&rounds);
        Self {
            name: name.into(),
            unit: Cow::Borrowed(unit),
            rounds,
            median,
            goal: None,
        }
    }

    /// A figure that was measured once.
    pub(super) fn once(name: impl Into<String>, unit: &'static str, value: f64) -> Self {
        Self::new(name, unit, vec![value])
    }

    pub(super) fn at_most(mut self, limit: f64) -> Self {
        self.goal = Some(Goal::AtMost(limit));
        self
    }

    pub(super) fn at_least(mut self, limit: f64) -> Self {
        self.goal = Some(Goal::AtLeast(limit));
        self
    }

    /// The same under a name that says where.
    pub(super) fn on(mut self, place: &str) -> Self {
        self.name = format!("{place}: {}", self.name);
        self
    }

    /// Whether the goal is reached; `None` without one.
    pub(super) fn met(&self) -> Option<bool> {
        Some(match self.goal? {
            Goal::AtMost(limit) => self.median <= limit,
            Goal::AtLeast(limit) => self.median >= limit,
        })
    }

    fn spread(&self) -> (f64, f64) {
        let low = self.rounds.iter().copied().fold(f64::INFINITY, f64::min);
        let high = self
            .rounds
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max);
        (low, high)
    }
}

/// The middle value; of an even number, the mean of the two in the middle. NaN of none.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.get(middle), sorted.len() % 2) {
        (None, _) => f64::NAN,
        (Some(high), 1) => *high,
        (Some(high), _) => f64::midpoint(sorted[middle - 1], *high),
    }
}

/// What was measured on.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Machine {
    kernel: String,
    cpu: String,
    cpus: usize,
    load_average: String,
}

impl Machine {
    pub(super) fn this() -> Result<Self> {
        let read = |path: &str| {
            std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))
        };
        let cpuinfo = read("/proc/cpuinfo")?;
        let cpu = cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
            .map_or("unknown", |(_, name)| name);
        let load = read("/proc/loadavg")?;
        Ok(Self {
            kernel: read("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            cpu: cpu.to_owned(),
            cpus: std::thread::available_parallelism()?.get(),
            load_average: load.split(' ').next().unwrap_or_default().to_owned(),
        })
    }
}

/// Prints a Markdown table, as docs/performance.md carries it.
pub(super) fn print_table(machine: &Machine, figures: &[Figure]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{} x {}, kernel {}, load average at the end {}\n",
        machine.cpus, machine.cpu, machine.kernel, machine.load_average
    )?;
    writeln!(out, "| figure | median | rounds from … to | goal | |")?;
    writeln!(out, "|---|---:|---:|---:|---|")?;
    for figure in figures {
        let (low, high) = figure.spread();
        let goal = match figure.goal {
            None => String::new(),
            Some(Goal::AtMost(limit)) => format!("≤ {}", number(limit)),
            Some(Goal::AtLeast(limit)) => format!("≥ {}", number(limit)),
        };
        let spread = if figure.rounds.len() > 1 {
            format!("{} … {}", number(low), number(high))
        } else {
            String::new()
        };
        let met = match figure.met() {
            None => "",
            Some(true) => "met",
            Some(false) => "**missed**",
        };
        writeln!(
            out,
            "| {} | {} {} | {spread} | {goal} | {met} |",
            figure.name,
            number(figure.median),
            figure.unit
        )?;
    }
    Ok(())
}

/// Prints everything as one JSON object.
pub(super) fn print_json(machine: &Machine, figures: &[Figure]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let all = serde_json::json!({ "machine": machine, "figures": figures });
    writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
    Ok(())
}

/// Four digits that matter.
fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 1000.0 || value.fract().abs() < f64::EPSILON {
        format!("{value:.0}")
    } else if size >= 100.0 {
        format!("{value:.1}")
    } else if size >= 10.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]).to_bits(), 2.0_f64.to_bits());
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]).to_bits(), 2.5_f64.to_bits());
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn goals() {
        let figure = Figure::new("a", "", vec![1.0, 2.0, 3.0]);
        assert_eq!(figure.met(), None);
        assert_eq!(figure.clone().at_most(2.0).met(), Some(true));
        assert_eq!(figure.at_least(2.1).met(), Some(false));
    }
}
