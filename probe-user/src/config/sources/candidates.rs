//! The flags that a value from elsewhere may be for.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

/// A flag that was not typed.
pub(super) struct Candidate<'a> {
    /// Its name without dashes.
    pub(super) name: &'a str,
    arg: &'a Arg,
}

/// The flags of a subcommand, global ones included, that were not typed.
pub(super) fn candidates<'a>(
    command: &'a Command,
    subcommand: &str,
    matches: &ArgMatches,
) -> Vec<Candidate<'a>> {
    let Some(subcommand) = command.find_subcommand(subcommand) else {
        return Vec::new();
    };
    subcommand
        .get_arguments()
        .filter(|arg| {
            let id = arg.get_id().as_str();
            matches.try_contains_id(id).is_ok()
                && matches.value_source(id) != Some(ValueSource::CommandLine)
        })
        .filter_map(|arg| {
            let name = arg.get_long()?;
            takes_values(arg).then_some(Candidate { name, arg })
        })
        .collect()
}

/// Every flag's name, of every subcommand.
pub(super) fn every_flag(command: &Command) -> impl Iterator<Item = &str> {
    command
        .get_subcommands()
        .flat_map(Command::get_arguments)
        .filter(|arg| takes_values(arg))
        .filter_map(Arg::get_long)
}

/// Whether some subcommand's flag of this name takes the values.
pub(super) fn taken_elsewhere(command: &Command, name: &str, values: &[String]) -> bool {
    command
        .get_subcommands()
        .flat_map(Command::get_arguments)
        .filter(|arg| arg.get_long() == Some(name))
        .any(|arg| Candidate { name, arg }.arguments(values).is_ok())
}

/// `etcd-cacert`: `JOINPROBE_ETCD_CACERT`.
pub(super) fn variable(name: &str) -> String {
    format!("JOINPROBE_{}", name.to_ascii_uppercase().replace('-', "_"))
}

fn takes_values(arg: &Arg) -> bool {
    matches!(
        arg.get_action(),
        ArgAction::Set | ArgAction::Append | ArgAction::SetTrue | ArgAction::Count
    )
}

impl Candidate<'_> {
    /// A variable's values: separated by commas where the flag may be given several times.
    pub(super) fn split(&self, text: &str) -> Vec<String> {
        match self.arg.get_action() {
            ArgAction::Append => text
                .split(',')
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect(),
            _ => vec![text.trim().to_owned()],
        }
    }

    /// The values as they would have been typed.
    ///
    /// # Errors
    /// Why one of them cannot be used.
    pub(super) fn arguments(&self, values: &[String]) -> Result<Vec<OsString>, String> {
        let flag = format!("--{}", self.name);
        let arguments: Vec<OsString> = match (self.arg.get_action(), values) {
            (ArgAction::Append, values) => values
                .iter()
                .map(|value| format!("{flag}={value}").into())
                .collect(),
            (_, []) => Vec::new(),
            (ArgAction::SetTrue, [value]) => match value.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" | "1" => vec![flag.into()],
                "false" | "no" | "off" | "0" => Vec::new(),
                _ => return Err("it is neither true nor false".to_owned()),
            },
            (ArgAction::Count, [value]) => match value.parse::<u8>() {
                Ok(count) => vec![flag.into(); count.into()],
                Err(_) => return Err("it is not a small number".to_owned()),
            },
            (_, [value]) => vec![format!("{flag}={value}").into()],
            (_, [_, ..]) => return Err("it takes one value, not several".to_owned()),
        };
        self.check(&arguments)?;
        Ok(arguments)
    }

    /// Tries the flag alone, so that the message can name where its value came from.
    fn check(&self, arguments: &[OsString]) -> Result<(), String> {
        let alone = self
            .arg
            .clone()
            .global(false)
            .required(false)
            .exclusive(false);
        let alone = Command::new("joinprobe")
            .no_binary_name(true)
            .disable_help_flag(true)
            .disable_version_flag(true)
            .arg(alone);
        match alone.try_get_matches_from(arguments) {
            Ok(_) => Ok(()),
            Err(error) => Err(reason(&error)),
        }
    }
}

/// The part of clap's message that is about the value.
fn reason(error: &clap::Error) -> String {
    use std::error::Error as _;
    if let Some(source) = error.source() {
        return source.to_string();
    }
    let mut reason = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) => format!("`{value}` is not a value it takes"),
        _ => "it is not a value the flag takes".to_owned(),
    };
    if let Some(ContextValue::Strings(valid)) = error.get(ContextKind::ValidValue) {
        reason.push_str("; write ");
        reason.push_str(&valid.join(" or "));
    }
    reason
}
