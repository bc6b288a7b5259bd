//! Every joinprobe command line of the documentation is one that joinprobe takes.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use clap::{CommandFactory as _, FromArgMatches as _, Parser as _};
use probe_user::cli::{Args, Command};
use probe_user::config::sources::complete;

use crate::blocks::{blocks, object, strings};
use crate::repository;

/// What ends a command in a shell.
const ENDS: &[&str] = &["|", "||", "&&", ";", "&", "#", ")"];

/// The joinprobe command in a line, as words.
fn command(line: &str) -> Option<Vec<String>> {
    let mut words = line.split_whitespace().skip_while(|word| {
        let word = word.trim_start_matches(['(', '"', '`']);
        word != "joinprobe"
            && !word.ends_with("bin/joinprobe")
            && !word.ends_with("release/joinprobe")
    });
    words.next()?;
    let words: Vec<String> = words
        .take_while(|word| !ENDS.contains(word))
        .map(|word| word.trim_matches(['"', '\'', ';', ')']).to_owned())
        .collect();
    // Words such as "joinprobe: the join goes on" are no command.
    let is_command = words
        .first()
        .is_some_and(|word| word.chars().all(|letter| letter.is_ascii_lowercase()));
    is_command.then(|| [vec!["joinprobe".to_owned()], words].concat())
}

#[test]
fn every_command_line_is_understood() -> Result<()> {
    let mut pages = vec!["README.md".to_owned()];
    for entry in fs::read_dir(repository().join("docs"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "md") {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            pages.push(format!("docs/{name}"));
        }
    }
    let mut understood = 0;
    for page in pages {
        for language in ["sh", "console", "yaml", ""] {
            for block in blocks(&page, language)? {
                for line in block.replace("\\\n", " ").lines() {
                    if line.trim_start().starts_with("image:") {
                        continue;
                    }
                    let Some(words) = command(line) else { continue };
                    Args::try_parse_from(&words)
                        .with_context(|| format!("{page}: `{}`", words.join(" ")))?;
                    understood += 1;
                }
            }
        }
    }
    ensure!(understood > 15, "only {understood} commands were found");
    Ok(())
}

#[test]
fn the_manifests_commands_are_understood() -> Result<()> {
    let page = "docs/static-pod-and-daemonset.md";
    let pod = object(page, "Pod")?;
    let set = object(page, "DaemonSet")?;
    for spec in [&pod["spec"], &set["spec"]["template"]["spec"]] {
        let command = strings(&spec["containers"][0]["command"]);
        ensure!(command.len() > 1, "no command: {spec}");
        Args::try_parse_from(&command)?;
    }
    Ok(())
}

#[test]
fn a_wrong_flag_would_be_found() {
    let words = command("code=0; joinprobe preflight --no-such-flag || code=$?").unwrap();
    assert_eq!(words, ["joinprobe", "preflight", "--no-such-flag"]);
    assert!(Args::try_parse_from(&words).is_err());
}

#[test]
fn the_example_of_a_configuration_file_is_understood() -> Result<()> {
    let path = repository().join("docs/examples/joinprobe.yaml");
    let words = [
        "joinprobe".into(),
        "--config".into(),
        path.into(),
        "preflight".into(),
    ];
    let completed = complete(&mut Args::command(), words.to_vec(), |_| None)?;
    let args = Args::from_arg_matches(&completed.matches)?;
    let Command::Preflight(args) = args.command else {
        bail!("not preflight");
    };
    assert_eq!(args.probing.etcd.len(), 3);
    ensure!(
        completed
            .origins
            .of("retry-for")
            .to_string()
            .contains("joinprobe.yaml")
    );
    Ok(())
}
