//! What the kernel side measures, held against the capture, sample by sample.
//!
//! The capture runs at the observer's end of the link and carries the kernel's own timestamps, so the lab's delays, as
//! unpunctual as they are, are the truth and not an error.

mod errors;
mod handshakes;
mod row;
mod samples;
mod scenario;
mod sources;
mod traffic;

use std::fmt::Write as _;

use anyhow::{Context, Result};
use joinprobe_lab::{attempts, on_time, take_turn};

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
    let (mut put_aside, mut resent) = (0, 0);
    for row in &rows {
        handshakes.add(&row.handshakes);
        raw.add(&row.raw);
        rebuilt.add(&row.rebuilt);
        // The buckets' own width, and nothing else, comes between a sample and its quantile.
        assert!(row.quantile_error <= 0.01, "{}\n{table}", row.scenario);
        assert_eq!(row.retransmits.0, row.retransmits.1, "{}", row.scenario);
        on_time(row.ambiguous * 10 <= row.raw.len(), || {
            format!("what was late was sent again: {row}")
        })?;
        different += row.different;
        // No sample of theirs is a retransmission's.
        if !row.scenario.timestamps {
            assert_eq!(row.of_retransmissions, 0, "{}", row.scenario);
        }
        put_aside += row.of_retransmissions;
        resent += row.resent_acknowledged as u64;
    }
    let _ = writeln!(
        table,
        "\nAll: handshakes {handshakes}; raw samples {raw}; reconstructed samples {rebuilt}, of which {different} \
         differ from raw ones; put aside {put_aside} of {resent} of retransmissions"
    );
    // One in a thousand of those that might have been a retransmission's is so by chance; the capture may miss one.
    let samples = raw.len() as u64 + put_aside;
    on_time(put_aside.abs_diff(resent) * 500 <= samples, || {
        table.clone()
    })?;
    assert!(different * 1000 <= rebuilt.len(), "{table}");
    // The capture stamps a packet when it comes, TCP takes it up when the machine lets it: mostly at once.
    on_time(handshakes.quantile_within(0.5, 50.0), || table.clone())?;
    on_time(handshakes.quantile_within(0.99, 500.0), || table.clone())?;
    for (source, errors) in [("raw", &raw), ("reconstructed", &rebuilt)] {
        on_time(errors.share_within(100.0) >= 0.99, || {
            format!("{source}: {table}")
        })?;
    }
    Ok(Some(table))
}

#[test]
fn samples_agree_with_the_wire() -> Result<()> {
    if let Some(table) = attempts(3, || run(&selection(), |_| ()))? {
        println!("{table}");
    }
    Ok(())
}

#[test]
#[ignore = "takes a quarter of an hour; `cargo xtask test --full` runs it"]
fn samples_agree_with_the_wire_over_the_whole_range() -> Result<()> {
    if let Some(table) = attempts(2, || run(&sweep(), |row| println!("{row}")))? {
        println!("{table}");
    }
    Ok(())
}
