//! The diagnosis as a table and as JSON.

use std::io::{self, Write};
use std::time::SystemTime;

use serde::Serialize;

use super::{Check, CheckState, Diagnosis};
use crate::output::{Kind, Marks, Schema, Timestamp};
use crate::verdict::FindingState;

/// Writes it for people.
///
/// # Errors
/// When it cannot be written.
pub fn table(diagnosis: &Diagnosis, marks: Marks, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", diagnosis.node)?;
    for check in &diagnosis.checks {
        let (mark, style) = marks.of(finding_state(check.state));
        writeln!(out, "{style}{mark}{style:#} {}", check.text)?;
        if !check.remedy.is_empty() {
            let indent = " ".repeat(mark.chars().count());
            writeln!(out, "{indent} hint: {}", check.remedy)?;
        }
    }
    let conclusion = if diagnosis.can_measure() {
        "joinprobe can measure here"
    } else {
        "joinprobe cannot measure here"
    };
    writeln!(out, "\n{conclusion}")?;
    out.flush()
}

/// Writes it as one line of JSON, kind `doctor` of the schema.
///
/// # Errors
/// When it cannot be written.
pub fn json(diagnosis: &Diagnosis, time: SystemTime, out: &mut dyn Write) -> io::Result<()> {
    let line = Line {
        schema: Schema::V1,
        kind: Kind::Doctor,
        time: Timestamp(time),
        node: &diagnosis.node,
        can_measure: diagnosis.can_measure(),
        checks: &diagnosis.checks,
    };
    serde_json::to_writer(&mut *out, &line)?;
    out.write_all(b"\n")?;
    out.flush()
}

#[derive(Serialize)]
struct Line<'a> {
    schema: Schema,
    kind: Kind,
    time: Timestamp,
    node: &'a str,
    can_measure: bool,
    checks: &'a [Check],
}

fn finding_state(state: CheckState) -> FindingState {
    match state {
        CheckState::Pass => FindingState::Pass,
        CheckState::Warn => FindingState::Warn,
        CheckState::Fail => FindingState::Fail,
        CheckState::Note => FindingState::NotDecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Diagnosis {
        Diagnosis {
            node: "cp-4".to_owned(),
            checks: vec![
                Check::pass("kernel", "kernel 6.1.0"),
                Check::warn("btf", "there is no BTF", "use another kernel"),
                Check::note("tracefs", "tracefs is not mounted"),
                Check::fail("capability", "CAP_BPF is missing", "run as root"),
            ],
        }
    }

    #[test]
    fn every_state_has_its_mark_and_remedies_follow() {
        let mut bytes = Vec::new();
        table(&sample(), Marks::Ascii, &mut bytes).unwrap();
        let text = anstream::adapter::strip_bytes(&bytes).into_vec();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "cp-4\nok kernel 6.1.0\n!! there is no BTF\n   hint: use another kernel\n.. tracefs is not mounted\n\
             XX CAP_BPF is missing\n   hint: run as root\n\njoinprobe cannot measure here\n"
        );
    }

    #[test]
    fn the_line_fits_the_published_schema() {
        let mut bytes = Vec::new();
        json(&sample(), SystemTime::UNIX_EPOCH, &mut bytes).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        joinprobe_lab::schema::check(&value).unwrap();
        assert_eq!(value["can_measure"], false);
        assert_eq!(value["checks"][3]["state"], "fail");
    }
}
