//! Performance data as monitoring plugins write it: `'label'=value[UOM];[warn];[crit];[min];[max]`.

use std::fmt;

use super::headline::decimal;
use super::{Amount, FindingReport, Report, TargetReport};
use crate::verdict::{Unit, WarnFail};

/// One value of one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Metric {
    label: String,
    value: u64,
    limits: WarnFail,
    unit: Unit,
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Thresholds are ranges: a bare number alerts above it, which is what a limit means here.
        let (digits, uom) = match self.unit {
            Unit::Micros => (6, "s"),
            Unit::PartsPerMillion => (4, "%"),
            Unit::Count => (0, ""),
        };
        let threshold =
            |limit: Option<u64>| limit.map_or_else(String::new, |limit| decimal(limit, digits));
        write!(
            f,
            "'{}'={}{uom};{};{};0",
            self.label,
            decimal(self.value, digits),
            threshold(self.limits.warn),
            threshold(self.limits.fail)
        )
    }
}

/// Everything with a number in `report`: each check with its limits, then the median of every measure that has samples
/// and no check. Labels are unique.
pub(super) fn metrics(report: &Report) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = Vec::new();
    for target in &report.targets {
        let checks = target.findings.iter().filter_map(|finding| {
            let Amount {
                value,
                limits,
                unit,
                ..
            } = finding.amount?;
            Some((None, name(finding), value, limits, unit))
        });
        let medians = target.measured.measures().filter_map(|(measure, report)| {
            let median = report.quantiles()?.p50_us;
            Some((
                target.measured.process_name(),
                format!("{measure}_p50"),
                median,
                WarnFail::default(),
                Unit::Micros,
            ))
        });
        for (process, name, value, limits, unit) in checks.chain(medians) {
            let label = label(target, process, &name);
            if metrics.iter().all(|known| known.label != label) {
                metrics.push(Metric {
                    label,
                    value,
                    limits,
                    unit,
                });
            }
        }
    }
    metrics
}

fn name(finding: &FindingReport) -> String {
    match (finding.measure, finding.quantile) {
        (Some(measure), Some(quantile)) => format!("{measure}_p{:.0}", quantile * 100.0),
        (Some(measure), None) => format!("{measure}_max"),
        (None, _) => finding.id.replace('-', "_"),
    }
}

/// Icinga forbids quotes and equals signs, which Nagios would have doubled.
fn label(target: &TargetReport, process: Option<&str>, name: &str) -> String {
    let measured = &target.measured;
    let side = if measured.side == "client" {
        ""
    } else {
        " server"
    };
    let process = process.map_or_else(String::new, |name| format!(" {name}"));
    format!(
        "{} {}{side}{process} {name}",
        measured.role, measured.target
    )
    .replace(['\'', '=', '|'], "_")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::output::samples;

    /// Label, value, UOM, and warn, crit, min, max.
    type Parsed = (String, f64, String, [Option<f64>; 4]);

    /// Reads performance data by the letter of the plugin guidelines, and refuses everything else.
    pub(in crate::output) fn parse(perfdata: &str) -> Result<Vec<Parsed>, String> {
        let mut rest = perfdata;
        let mut metrics = Vec::new();
        while !rest.is_empty() {
            let quoted = rest.strip_prefix('\'').ok_or("a label is not quoted")?;
            let (label, behind) = quoted.split_once('\'').ok_or("a label has no end")?;
            let behind = behind.strip_prefix('=').ok_or("no = behind a label")?;
            let (fields, next) = behind.split_once(' ').unwrap_or((behind, ""));
            let mut fields = fields.split(';');
            let (value, uom) = number(fields.next().unwrap_or(""))?;
            if !["", "s", "%"].contains(&uom) {
                return Err(format!("unit {uom}"));
            }
            let mut others = [None; 4];
            for (at, field) in fields.enumerate() {
                let slot = others.get_mut(at).ok_or("too many fields")?;
                if !field.is_empty() {
                    let (value, tail) = number(field)?;
                    if !tail.is_empty() {
                        return Err(format!("{field} is no number"));
                    }
                    *slot = Some(value);
                }
            }
            metrics.push((label.to_owned(), value, uom.to_owned(), others));
            rest = next;
        }
        Ok(metrics)
    }

    fn number(text: &str) -> Result<(f64, &str), String> {
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-')
            .unwrap_or(text.len());
        let (digits, tail) = text.split_at(end);
        let value = digits.parse().map_err(|_| format!("{text} is no number"))?;
        Ok((value, tail))
    }

    fn parsed(report: &Report) -> Vec<Parsed> {
        let texts: Vec<_> = metrics(report).iter().map(ToString::to_string).collect();
        parse(&texts.join(" ")).unwrap()
    }

    #[test]
    fn a_strict_reader_gets_values_and_limits_in_seconds() {
        let all = parsed(&samples::trouble());
        let of = |label: &str| all.iter().find(|(name, ..)| name == label).unwrap();
        let (_, value, uom, others) = of("etcd-client 10.1.0.2:2379 handshake_p50");
        assert_eq!(uom, "s");
        assert!((value - 0.0714).abs() < 1e-9);
        assert_eq!(others, &[Some(0.05), Some(0.1), Some(0.0), None]);
        let (_, value, uom, others) = of("apiserver 10.1.0.9:6443 retransmit_rate");
        assert_eq!(
            (uom.as_str(), others[0], others[1]),
            ("%", Some(1.0), Some(5.0))
        );
        assert!((value - 1.0416).abs() < 1e-9);
        let (_, _, uom, others) = of("apiserver 10.1.0.9:6443 syn_retransmits");
        assert_eq!((uom.as_str(), others[0], others[1]), ("", Some(0.0), None));
    }

    #[test]
    fn every_measure_with_samples_is_told_once() {
        for report in [samples::verdict(), samples::trouble()] {
            let all = parsed(&report);
            let mut labels: Vec<_> = all.iter().map(|(label, ..)| label).collect();
            labels.sort();
            let told = labels.len();
            labels.dedup();
            assert_eq!(labels.len(), told);
            for target in &report.targets {
                for (measure, distribution) in target.measured.measures() {
                    let label = label(target, None, &format!("{measure}_p50"));
                    assert_eq!(
                        all.iter().any(|(known, ..)| *known == label),
                        distribution.count() > 0,
                        "{label}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_reader_is_strict() {
        for broken in [
            "a=1",
            "'a'1",
            "'a'=x",
            "'a'=1s;2s",
            "'a'=1;2;3;4;5;6",
            "'a'=1kg",
            "'a=1",
        ] {
            assert!(parse(broken).is_err(), "{broken}");
        }
    }
}
