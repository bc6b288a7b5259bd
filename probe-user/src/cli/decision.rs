//! Arguments that say how a verdict is reached, the same for every command that gives one.

use std::time::Duration;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};

use super::duration;
use crate::verdict::Profile;

/// The cluster's own raft timing.
#[derive(Debug, clap::Args)]
pub struct TimingArgs {
    /// etcd's heartbeat interval; limits are derived from it [default: that of this node's etcd manifest, else 100ms]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_positive, help_heading = "Verdict")]
    pub etcd_heartbeat: Option<Duration>,
    /// etcd's election timeout; limits are derived from it [default: that of this node's etcd manifest, else 1000ms]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_positive, help_heading = "Verdict")]
    pub etcd_election: Option<Duration>,
}

/// How a verdict is reached.
#[derive(Debug, clap::Args)]
pub struct DecisionArgs {
    /// The cluster's own raft timing.
    #[command(flatten)]
    pub timing: TimingArgs,
    /// Ready-made limits for a kind of cluster
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = profiles(), help_heading = "Verdict")]
    pub profile: Profile,
    /// One limit, for example etcd-rtt-fail=80ms or retransmit-rate-warn=2%; repeatable
    #[arg(
        long,
        value_name = "NAME=VALUE",
        action = clap::ArgAction::Append,
        help_heading = "Verdict"
    )]
    pub limit: Vec<String>,
    /// How sure a decision has to be
    #[arg(long, value_name = "PERCENT", default_value = "95", value_parser = confidence, help_heading = "Verdict")]
    pub confidence: f64,
    /// What a failed check is: a reason not to join, or a warning with exit code 0
    #[arg(
        long,
        value_enum,
        default_value_t = Mode::Fail,
        help_heading = "Verdict"
    )]
    pub mode: Mode,
    /// Exit 4 on warnings
    #[arg(long, help_heading = "Verdict")]
    pub strict: bool,
    /// Exit 0 when there is not enough data to decide
    #[arg(long, help_heading = "Verdict")]
    pub allow_inconclusive: bool,
}

/// What a failed check is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// A reason not to join.
    #[default]
    Fail,
    /// A warning.
    Warn,
}

fn profiles() -> impl clap::builder::TypedValueParser<Value = Profile> {
    PossibleValuesParser::new(Profile::ALL.map(Profile::name)).map(|name| {
        Profile::ALL
            .into_iter()
            .find(|profile| profile.name() == name)
            .unwrap_or_default()
    })
}

/// A share from 0 to 1, written in percent.
fn confidence(written: &str) -> Result<f64, String> {
    let percent = written.strip_suffix('%').unwrap_or(written).trim_end();
    match percent.parse::<f64>() {
        Ok(percent) if (50.0..=99.9).contains(&percent) => Ok(percent / 100.0),
        _ => Err("it is not a number from 50 to 99.9; write 95 for 95 %".to_owned()),
    }
}
