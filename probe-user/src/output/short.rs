//! `-o short`: one line that a person or a log can take in.

use std::io::{self, Write};

use super::headline::{Headline, decimal};
use super::{Render, Report};

/// Verdict, worst target, its number and its limit.
#[derive(Clone, Copy, Debug)]
pub struct Short;

impl Render for Short {
    fn write(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let worst = Headline::of(report).map_or_else(
            || "nothing was checked".to_owned(),
            |headline| headline.sentence(),
        );
        let rows = report.targets.iter();
        let targets = rows.filter(|row| !row.is_further_process()).count();
        writeln!(
            out,
            "{}: {worst} ({targets} {} in {} s)",
            report.verdict,
            if targets == 1 { "target" } else { "targets" },
            decimal(report.duration_us / 10_000, 2)
        )?;
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::samples;

    fn short(report: &Report) -> String {
        let mut out = Vec::new();
        Short.write(report, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn reads_as_recorded() {
        insta::assert_snapshot!("short_pass", short(&samples::verdict()));
        insta::assert_snapshot!("short_fail", short(&samples::trouble()));
    }

    #[test]
    fn it_is_one_line_also_without_targets() {
        for report in [samples::verdict(), samples::trouble(), samples::nothing()] {
            assert_eq!(short(&report).lines().count(), 1);
        }
    }
}
