//! Where a flag's value may come from besides the command line: the environment and a configuration file.
//!
//! A value from there is put into the arguments as if it had been typed, so that it goes through the same checks. What
//! was typed wins over the environment, and the environment over the file.

mod candidates;
#[cfg(test)]
mod tests;
mod unknown;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgMatches, Command};

use crate::discover::{DiscoverError, Origin, Setting, settings};
use candidates::{Candidate, candidates, every_flag, taken_elsewhere, variable};
pub use unknown::unknown_variables;

/// The flag that names the configuration file.
const CONFIG: &str = "config";

/// Why a value from the environment or the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The command line itself; clap's own message. Help and version come this way too.
    #[error(transparent)]
    CommandLine(#[from] clap::Error),
    /// An environment variable.
    #[error("the environment variable {variable} cannot be used: {reason}; correct or unset it")]
    Variable {
        /// Its name.
        variable: String,
        /// What is wrong.
        reason: String,
    },
    /// The configuration file.
    #[error(transparent)]
    File(#[from] DiscoverError),
}

/// Where each flag's value came from, by the flag's name without dashes.
#[derive(Clone, Debug, Default)]
pub struct Origins(HashMap<String, Origin>);

impl Origins {
    /// Where the value of `--name` came from.
    #[must_use]
    pub fn of(&self, name: &str) -> Origin {
        self.0
            .get(name)
            .cloned()
            .unwrap_or_else(|| Origin::Flag(format!("--{name}")))
    }
}

/// The arguments with everything that the environment and the file add.
pub struct Completed {
    /// What clap makes of them.
    pub matches: ArgMatches,
    /// Where each value came from.
    pub origins: Origins,
}

/// Completes the arguments of `command` from `environment` and from the file that `--config` names.
///
/// # Errors
/// The arguments, a variable or the file cannot be used.
pub fn complete(
    command: &mut Command,
    arguments: Vec<OsString>,
    environment: impl Fn(&str) -> Option<OsString>,
) -> Result<Completed, SourceError> {
    command.build();
    let typed = command.try_get_matches_from_mut(arguments.clone())?;
    let Some((name, matches)) = typed.subcommand() else {
        return Ok(Completed {
            matches: typed,
            origins: Origins::default(),
        });
    };
    let candidates = candidates(command, name, matches);
    let mut added = Vec::new();
    let mut origins = Origins::default();
    let mut config = matches
        .try_get_one::<PathBuf>(CONFIG)
        .ok()
        .flatten()
        .cloned();
    for candidate in &candidates {
        let variable = variable(candidate.name);
        let Some(value) = environment(&variable).filter(|value| !value.is_empty()) else {
            continue;
        };
        let refuse = |reason| SourceError::Variable {
            variable: variable.clone(),
            reason,
        };
        let text = value
            .into_string()
            .map_err(|_| refuse("it is not UTF-8".to_owned()))?;
        if candidate.name == CONFIG {
            config = Some(PathBuf::from(&text));
        }
        let values = candidate.split(&text);
        match candidate.arguments(&values) {
            Ok(arguments) => added.extend(arguments),
            Err(_) if taken_elsewhere(command, candidate.name, &values) => continue,
            Err(reason) => return Err(refuse(reason)),
        }
        origins
            .0
            .insert(candidate.name.to_owned(), Origin::Environment(variable));
    }
    if let Some(path) = config {
        for setting in settings(&path)? {
            add_setting(command, &candidates, &setting, &mut added, &mut origins)?;
        }
    }
    let matches = if added.is_empty() {
        typed
    } else {
        let arguments = insert(command, arguments, name, added);
        command.try_get_matches_from_mut(arguments)?
    };
    Ok(Completed { matches, origins })
}

fn add_setting(
    command: &Command,
    candidates: &[Candidate<'_>],
    setting: &Setting,
    added: &mut Vec<OsString>,
    origins: &mut Origins,
) -> Result<(), SourceError> {
    if setting.key == CONFIG || !every_flag(command).any(|flag| flag == setting.key) {
        let meant = unknown::nearest(&setting.key, every_flag(command));
        let meant = meant.map_or_else(String::new, |name| format!("; `{name}` is meant, perhaps"));
        return Err(setting
            .refuse(format!("there is no flag of that name{meant}"))
            .into());
    }
    // Another command's flag does no harm: one file serves all of them. A typed flag and a variable come first.
    let Some(candidate) = candidates
        .iter()
        .find(|candidate| candidate.name == setting.key)
        .filter(|candidate| !origins.0.contains_key(candidate.name))
    else {
        return Ok(());
    };
    match candidate.arguments(&setting.values) {
        Ok(arguments) => added.extend(arguments),
        // Nor does a value that only others take: `report` knows fewer formats than `preflight`.
        Err(_) if taken_elsewhere(command, candidate.name, &setting.values) => return Ok(()),
        Err(reason) => return Err(setting.refuse(reason).into()),
    }
    origins
        .0
        .insert(setting.key.clone(), setting.origin.clone());
    Ok(())
}

/// Puts `added` right behind the subcommand, where neither `--` nor a command to run can be in the way.
fn insert(
    command: &mut Command,
    mut arguments: Vec<OsString>,
    name: &str,
    added: Vec<OsString>,
) -> Vec<OsString> {
    let is_subcommand = |command: &mut Command, end: usize| {
        let begin = arguments.get(..=end).unwrap_or(&[]);
        match command.try_get_matches_from_mut(begin) {
            Ok(matches) => matches.subcommand_name() == Some(name),
            // What is missing behind it is not there yet.
            Err(error) => error.kind() == clap::error::ErrorKind::MissingRequiredArgument,
        }
    };
    let position = (1..arguments.len())
        .find(|end| arguments[*end] == *name && is_subcommand(command, *end))
        .unwrap_or(arguments.len().saturating_sub(1));
    let behind = arguments.split_off((position + 1).min(arguments.len()));
    arguments.extend(added);
    arguments.extend(behind);
    arguments
}
