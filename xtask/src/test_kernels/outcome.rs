//! What a run of the tests came to, read from what it printed.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Columns that the tests fill, and their headings.
const COLUMNS: [(&str, &str); 3] = [
    ("source", "RTT source"),
    ("handshake", "handshake error (median / largest)"),
    ("segment", "segment error (median / largest)"),
];

/// The tests of one kernel.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Its release.
    pub(super) kernel: String,
    cells: BTreeMap<String, Vec<String>>,
    passed: usize,
    failed: Vec<String>,
    log: PathBuf,
}

impl Outcome {
    /// Reads the output of the test program, among which the kernel's own messages may be.
    pub(super) fn read(kernel: &str, text: &str, log: PathBuf) -> Self {
        let mut outcome = Self {
            kernel: kernel.to_owned(),
            cells: BTreeMap::new(),
            passed: 0,
            failed: Vec::new(),
            log,
        };
        let mut current = String::new();
        for line in text.lines().map(str::trim) {
            if let Some((_, cell)) = line.split_once("kernel-table ")
                && let Some((column, value)) = cell.split_once(": ")
            {
                let values = outcome.cells.entry(column.to_owned()).or_default();
                values.push(value.to_owned());
            }
            if let Some(rest) = line.strip_prefix("test ")
                && let Some((name, _)) = rest.split_once(" ...")
            {
                name.clone_into(&mut current);
            }
            // With its output shown, a test's result stands on a line of its own.
            if line == "ok" || line.ends_with(" ... ok") {
                outcome.passed += 1;
            } else if line == "FAILED" || line.ends_with(" ... FAILED") {
                outcome.failed.push(current.clone());
            }
        }
        outcome
    }

    /// Whether tests ran and none failed.
    pub(super) fn passed(&self) -> bool {
        self.passed > 0 && self.failed.is_empty()
    }

    /// What went wrong.
    pub(super) fn failure(&self) -> String {
        let what = if self.failed.is_empty() {
            "no test ran".to_owned()
        } else {
            format!("{} failed", self.failed.join(", "))
        };
        format!("{what}; see {}", self.log.display())
    }

    fn cell(&self, column: &str) -> String {
        self.cells
            .get(column)
            .map_or_else(|| "-".to_owned(), |values| values.join(", "))
    }

    fn row(&self) -> String {
        let loads = if self.cells.contains_key("source") {
            "yes"
        } else {
            "no"
        };
        let mut cells = vec![self.kernel.clone(), loads.to_owned()];
        cells.extend(COLUMNS.map(|(column, _)| self.cell(column)));
        let notes = if self.passed() {
            format!(
                "{} tests pass; preflight: {}; works without {}; lockdown tried: {}",
                self.passed,
                self.cell("preflight"),
                self.cell("without"),
                self.cell("lockdown")
            )
        } else {
            self.failure()
        };
        cells.push(notes);
        format!("| {} |", cells.join(" | "))
    }
}

/// The table of docs/kernel-support.md.
pub(super) fn table(outcomes: &[Outcome]) -> String {
    let mut headings = vec!["kernel", "loads"];
    headings.extend(COLUMNS.map(|(_, heading)| heading));
    headings.push("notes");
    let rule = "|---".repeat(headings.len());
    let rows: Vec<String> = outcomes.iter().map(Outcome::row).collect();
    format!("| {} |\n{rule}|\n{}", headings.join(" | "), rows.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
running 3 tests\r
test preflight::preflight_passes ... kernel-table preflight: pass\r
ok\r
[    9.1] a line of the kernel's\r
test rtt::rtts_agree_with_the_wire ... \r
kernel-table source: raw\r
kernel-table handshake: 12 / 30 us\r
FAILED\r
test lost::quiet ... ok\r
";

    #[test]
    fn results_are_read_beside_what_tests_print() {
        let outcome = Outcome::read("6.1", OUTPUT, PathBuf::from("x.log"));
        assert_eq!(outcome.passed, 2);
        assert_eq!(outcome.failed, ["rtt::rtts_agree_with_the_wire"]);
        assert!(!outcome.passed());
        let table = table(&[outcome]);
        assert!(
            table.contains("| 6.1 | yes | raw | 12 / 30 us | - | "),
            "{table}"
        );
    }

    #[test]
    fn a_machine_that_said_nothing_did_not_pass() {
        let outcome = Outcome::read("6.1", "", PathBuf::from("x.log"));
        assert!(!outcome.passed());
        assert!(outcome.failure().contains("no test ran"));
    }
}
