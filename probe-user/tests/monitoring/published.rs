//! The alert rules and the dashboard that docs/monitoring offers.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use joinprobe_lab::can_run;
use joinprobe_lab::monitoring::{Prometheus, promtool};
use probe_user::output::IntervalReport;
use serde_json::Value;

use crate::{prometheus, samples};

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs/monitoring")
        .join(name)
}

#[test]
fn alerts_fire_when_they_should() -> Result<()> {
    if !can_run(&["promtool"])? {
        return Ok(());
    }
    let rules = docs("rules.yml");
    promtool(&["check", "rules", rules.to_str().context("no path")?], "")?;
    let tests = docs("rules_test.yml");
    promtool(&["test", "rules", tests.to_str().context("no path")?], "")?;
    Ok(())
}

#[test]
fn alert_rules_name_only_what_is_exported() -> Result<()> {
    let rules = fs::read_to_string(docs("rules.yml"))?;
    let families = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("src/output/prometheus/families.rs"),
    )?;
    let words = rules.split(|c: char| !(c.is_ascii_alphanumeric() || "_:".contains(c)));
    for word in words.filter(|word| word.starts_with("joinprobe_")) {
        let name = ["_bucket", "_total", "_seconds"]
            .into_iter()
            .fold(word.trim_start_matches("joinprobe_"), |name, suffix| {
                name.trim_end_matches(suffix)
            });
        ensure!(
            families.contains(&format!("\"{name}\"")),
            "rules.yml: {word} is not exported"
        );
    }
    Ok(())
}

#[test]
fn every_query_of_the_dashboard_is_one() -> Result<()> {
    if !can_run(&["prometheus"])? {
        return Ok(());
    }
    every_query_works(samples::interval()?)?;
    every_query_works(samples::by_process()?)
}

fn every_query_works(report: IntervalReport) -> Result<()> {
    let mut server = Prometheus::start(prometheus::serve(report)?, false)?;
    server.wait_for("joinprobe_verdict")?;
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(docs("dashboard.json"))?)?;
    let panels = dashboard["panels"].as_array().context("no panels")?;
    let mut asked = 0;
    for panel in panels {
        for target in panel["targets"].as_array().context("no targets")? {
            let query = ["$instance", "$role", "$target"].iter().fold(
                target["expr"].as_str().context("no expr")?.to_owned(),
                |query, variable| query.replace(variable, ".*"),
            );
            let query = query.replace("$__rate_interval", "1m");
            server
                .query(&query)
                .with_context(|| format!("{}: {query}", panel["title"]))?;
            asked += 1;
        }
    }
    assert!(asked > 10);
    // What needs no second scrape has values at once.
    let verdicts = panels[0]["targets"][0]["expr"]
        .as_str()
        .context("no expr")?;
    let verdicts = ["$instance", "$role", "$target"]
        .iter()
        .fold(verdicts.to_owned(), |query, variable| {
            query.replace(variable, ".*")
        });
    let verdicts = server.query(&verdicts)?;
    assert_eq!(verdicts.len(), 3);
    assert!(
        verdicts
            .iter()
            .all(|sample| (sample.value - 1.0).abs() < f64::EPSILON)
    );
    Ok(())
}
