//! What follows from the result format that was chosen.

use std::ffi::OsString;
use std::io::{self, Write};

use clap::ValueEnum as _;

use super::OutputFormat;
use crate::exit::{Contract, Leniency};
use crate::output::{Json, Junit, Marks, Nagios, Npd, Render, Short, Table};

/// The variable a format can come from.
const VARIABLE: &str = "JOINPROBE_OUTPUT";

impl OutputFormat {
    /// Whose exit codes go with it.
    #[must_use]
    pub fn contract(self) -> Contract {
        match self {
            Self::Nagios => Contract::MonitoringPlugin,
            Self::Npd => Contract::NodeProblemDetector,
            Self::Table | Self::Json | Self::Short | Self::Junit => Contract::Joinprobe,
        }
    }

    /// What writes a verdict in it.
    #[must_use]
    pub fn render(self, leniency: Leniency) -> Box<dyn Render> {
        match self {
            Self::Table => Box::new(Table {
                marks: Marks::of_locale(),
            }),
            Self::Json => Box::new(Json),
            Self::Short => Box::new(Short),
            Self::Nagios => Box::new(Nagios { leniency }),
            Self::Npd => Box::new(Npd),
            Self::Junit => Box::new(Junit { leniency }),
        }
    }

    /// Says on standard output why there is no verdict, to callers that read nothing else.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn refuse(self, error: &str, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Nagios => Nagios::refuse(error, out),
            Self::Npd => Npd::refuse(error, out),
            Self::Table | Self::Json | Self::Short | Self::Junit => Ok(()),
        }
    }

    /// The format that arguments ask for which may be wrong otherwise: a monitoring system that made the mistake still
    /// gets an answer it understands.
    #[must_use]
    pub fn asked_for(
        arguments: &[OsString],
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Option<Self> {
        let mut words = arguments.iter().filter_map(|word| word.to_str());
        let mut asked = environment(VARIABLE).and_then(|value| value.into_string().ok());
        while let Some(word) = words.next() {
            if word == "--" {
                break;
            }
            // `-vo` is `-v -o`.
            let short = word
                .strip_prefix('-')
                .map(|flags| flags.trim_start_matches('v'))
                .and_then(|flags| flags.strip_prefix('o'));
            let value = match (word, short) {
                ("--output", _) | (_, Some("")) => words.next(),
                (_, Some(value)) => Some(value.trim_start_matches('=')),
                _ => word.strip_prefix("--output="),
            };
            asked = value.map(str::to_owned).or(asked);
        }
        Self::from_str(&asked?, false).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked_for(arguments: &str, variable: Option<&str>) -> Option<OutputFormat> {
        let arguments: Vec<_> = arguments.split(' ').map(OsString::from).collect();
        OutputFormat::asked_for(&arguments, |name| {
            assert_eq!(name, VARIABLE);
            variable.map(OsString::from)
        })
    }

    #[test]
    fn the_format_is_found_among_wrong_arguments() {
        let nagios = Some(OutputFormat::Nagios);
        for arguments in [
            "joinprobe preflight --etdc a -o nagios",
            "joinprobe preflight -onagios --etdc a",
            "joinprobe preflight -vvo nagios",
            "joinprobe preflight -o=nagios",
            "joinprobe preflight --output nagios",
            "joinprobe preflight -o json --output=nagios",
        ] {
            assert_eq!(asked_for(arguments, None), nagios, "{arguments}");
        }
        assert_eq!(asked_for("joinprobe preflight", Some("nagios")), nagios);
        assert_eq!(
            asked_for("joinprobe preflight -o npd", Some("nagios")),
            Some(OutputFormat::Npd)
        );
        for arguments in ["joinprobe", "joinprobe run -- sh -o nagios", "joinprobe -o"] {
            assert_eq!(asked_for(arguments, None), None, "{arguments}");
        }
    }
}
