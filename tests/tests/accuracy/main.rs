//! What the kernel side measures, held against the capture, sample by sample.
//!
//! The capture runs at the observer's end of the link and carries the kernel's own timestamps, so the lab's delays, as
//! unpunctual as they are, are the truth and not an error.

mod errors;
mod handshakes;
mod row;
mod samples;
mod scenario;
mod traffic;

use std::fmt::Write as _;

use anyhow::{Context, Result};
use joinprobe_lab::take_turn;

use errors::Errors;
use row::Row;
use scenario::{Scenario, selection, sweep};

/// Runs the scenarios, prints their table and holds all of them together against the promised bounds.
/// None if that cannot be done here. `tell` hears of each as it is done.
fn run(scenarios: &[Scenario], tell: impl Fn(&Row)) -> Result<Option<String>> {
    let mut rows = Vec::new();
    for scenario in scenarios {
        // Each a turn of its own: others wait for theirs.
        let Some(_turn) = take_turn(&["tcpdump", "ss"])? else {
            return Ok(None);
        };
        let row = Row::measure(scenario).with_context(|| scenario.to_string())?;
        tell(&row);
        rows.push(row);
    }
    let mut table = Row::table(&rows);
    let mut handshakes = Errors::default();
    let (mut raw, mut rebuilt) = (Errors::default(), Errors::default());
    let mut different = 0;
    for row in &rows {
        handshakes.add(&row.handshakes);
        raw.add(&row.raw);
        rebuilt.add(&row.rebuilt);
        // The buckets' own width, and nothing else, comes between a sample and its quantile.
        assert!(row.quantile_error <= 0.01, "{}\n{table}", row.scenario);
        assert_eq!(row.retransmits.0, row.retransmits.1, "{}", row.scenario);
        assert!(row.ambiguous * 10 <= row.raw.len(), "{}", row.scenario);
        different += row.different;
    }
    let _ = writeln!(
        table,
        "\nAll: handshakes {handshakes}; raw samples {raw}; reconstructed samples {rebuilt}, of which {different} \
         differ from raw ones"
    );
    assert!(different * 1000 <= rebuilt.len(), "{table}");
    assert!(handshakes.quantile_within(0.5, 50.0), "{table}");
    assert!(handshakes.quantile_within(0.99, 500.0), "{table}");
    for (source, errors) in [("raw", &raw), ("reconstructed", &rebuilt)] {
        assert!(errors.share_within(100.0) >= 0.99, "{source}: {table}");
    }
    Ok(Some(table))
}

#[test]
fn samples_agree_with_the_wire() -> Result<()> {
    if let Some(table) = run(&selection(), |_| ())? {
        println!("{table}");
    }
    Ok(())
}

#[test]
#[ignore = "takes a quarter of an hour; `cargo xtask test --full` runs it"]
fn samples_agree_with_the_wire_over_the_whole_range() -> Result<()> {
    if let Some(table) = run(&sweep(), |row| println!("{row}"))? {
        println!("{table}");
    }
    Ok(())
}
