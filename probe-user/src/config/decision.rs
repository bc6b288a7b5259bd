//! How a verdict is reached, resolved.

use std::time::Duration;

use super::ConfigError;
use super::sources::Origins;
use crate::cli::{DecisionArgs, Mode, TimingArgs};
use crate::discover::Found;
use crate::exit::Leniency;
use crate::verdict::{LimitError, Limits, Profile, Timing};

/// The cluster's own timing, as far as it was given.
#[derive(Clone, Debug, Default)]
pub struct TimingChoice {
    /// etcd's heartbeat interval.
    pub heartbeat: Option<Found<Duration>>,
    /// etcd's election timeout.
    pub election: Option<Found<Duration>>,
}

impl TimingChoice {
    /// Resolves the arguments.
    ///
    /// # Errors
    /// Timing that etcd would refuse.
    pub(super) fn resolve(args: &TimingArgs, origins: &Origins) -> Result<Self, ConfigError> {
        if let (Some(heartbeat), Some(election)) = (args.etcd_heartbeat, args.etcd_election)
            && election < 5 * heartbeat
        {
            return Err(ConfigError::Contradiction(format!(
                "--etcd-election {election:?} is less than five times --etcd-heartbeat {heartbeat:?}, which etcd \
                 refuses to start with: check both against the cluster's etcd manifest"
            )));
        }
        let found =
            |value: Option<Duration>, name| value.map(|value| Found::new(value, origins.of(name)));
        Ok(Self {
            heartbeat: found(args.etcd_heartbeat, "etcd-heartbeat"),
            election: found(args.etcd_election, "etcd-election"),
        })
    }

    /// The timing that limits are derived from; what was not named is `own`'s.
    #[must_use]
    pub fn or(&self, own: Timing) -> Timing {
        let source = match (&self.heartbeat, &self.election) {
            (None, None) => own.source,
            (heartbeat, election) => format!(
                "{}, {}",
                origin(heartbeat.as_ref(), "default heartbeat"),
                origin(election.as_ref(), "default election timeout")
            ),
        };
        let value =
            |found: &Option<Found<Duration>>, own| found.as_ref().map_or(own, |found| found.value);
        Timing {
            heartbeat: value(&self.heartbeat, own.heartbeat),
            election: value(&self.election, own.election),
            source,
        }
    }
}

/// How a verdict is reached; the cluster's timing may still be found elsewhere.
#[derive(Clone, Debug)]
pub struct DecisionChoice {
    /// The timing that was named.
    pub timing: TimingChoice,
    /// Ready-made limits.
    pub profile: Profile,
    /// Single limits as they were written, checked, and where each was given.
    pub limits: Vec<(String, String)>,
    /// Confidence of a run's decisions, a share from 0.5 to 0.999.
    pub confidence: f64,
    /// What is made of verdicts that are neither pass nor fail, or of all.
    pub leniency: Leniency,
}

impl DecisionChoice {
    /// Resolves the arguments.
    ///
    /// # Errors
    /// A limit that is none, or timing that etcd would refuse.
    pub(super) fn resolve(args: DecisionArgs, origins: &Origins) -> Result<Self, ConfigError> {
        let timing = TimingChoice::resolve(&args.timing, origins)?;
        let origin = origins.of("limit").to_string();
        let limits: Vec<(String, String)> = args
            .limit
            .into_iter()
            .map(|written| (written, origin.clone()))
            .collect();
        override_limits(&mut Limits::default(), &limits)?;
        Ok(Self {
            timing,
            profile: args.profile,
            limits,
            confidence: args.confidence,
            leniency: Leniency {
                strict: args.strict,
                allow_inconclusive: args.allow_inconclusive,
                warn_only: args.mode == Mode::Warn,
            },
        })
    }

    /// The limits for a cluster with this timing: a profile's timing gives way to the cluster's own, and single limits
    /// win over both.
    #[must_use]
    pub fn limits_for(&self, timing: &TimingChoice) -> Limits {
        let mut limits = self.profile.limits(timing.or(self.profile.timing()));
        // They were checked when they were resolved.
        let _ = override_limits(&mut limits, &self.limits);
        limits
    }
}

fn origin(found: Option<&Found<Duration>>, otherwise: &str) -> String {
    found.map_or_else(|| otherwise.to_owned(), |found| found.origin.to_string())
}

fn override_limits(limits: &mut Limits, written: &[(String, String)]) -> Result<(), LimitError> {
    written
        .iter()
        .try_for_each(|(written, source)| limits.set_written(written, source))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::verdict::LimitId;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        decision: DecisionArgs,
    }

    fn resolve(arguments: &[&str]) -> Result<DecisionChoice, String> {
        let cli = Cli::try_parse_from([""].iter().chain(arguments)).map_err(|e| e.to_string())?;
        DecisionChoice::resolve(cli.decision, &Origins::default()).map_err(|e| e.to_string())
    }

    #[test]
    fn single_limits_win_over_the_profile_and_the_profile_over_defaults() {
        let choice = resolve(&["--profile", "stretched", "--limit", "etcd-rtt-fail=80ms"]).unwrap();
        let limits = choice.limits_for(&choice.timing);
        assert_eq!(limits.get(LimitId::EtcdRttFail).value, 80_000);
        assert_eq!(limits.get(LimitId::EtcdRttFail).source, "--limit");
        assert_eq!(limits.get(LimitId::EtcdRttWarn).value, 250_000);
    }

    #[test]
    fn the_clusters_timing_wins_over_the_profiles() {
        let choice = resolve(&["--profile", "stretched", "--etcd-heartbeat", "200ms"]).unwrap();
        let limits = choice.limits_for(&choice.timing);
        assert_eq!(limits.get(LimitId::EtcdRttWarn).value, 100_000);
        assert_eq!(limits.get(LimitId::EtcdRttFail).value, 250_000);
    }

    #[test]
    fn wrong_values_are_named_with_a_remedy() {
        for (arguments, parts) in [
            (
                &["--limit", "rtt=1ms"] as &[&str],
                ["rtt=1ms", "etcd-rtt-warn"],
            ),
            (
                &["--limit", "etcd-rtt-fail=80"],
                ["etcd-rtt-fail=80", "80ms"],
            ),
            (&["--confidence", "30"], ["--confidence", "50 to 99.9"]),
            (&["--confidence", "nan"], ["--confidence", "50 to 99.9"]),
            (&["--profile", "wan"], ["wan", "stretched"]),
        ] {
            let error = resolve(arguments).unwrap_err();
            for part in parts {
                assert!(error.contains(part), "{part} is missing in: {error}");
            }
        }
        let choice = resolve(&["--confidence", "99", "--mode", "warn"]).unwrap();
        assert!((choice.confidence - 0.99).abs() < 1e-9 && choice.leniency.warn_only);
    }
}
