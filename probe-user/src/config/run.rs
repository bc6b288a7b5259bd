//! `joinprobe run`, resolved.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{CommandFactory as _, FromArgMatches as _};

use super::sources::Origins;
use super::{Common, ConfigError, ObserveConfig, PreflightConfig};
use crate::cli::{Args, Command, RunArgs};
use crate::verdict::Join;

/// Everything a run needs to know.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// What `watch` needs too.
    pub observe: ObserveConfig,
    /// Where the reports go instead of standard error.
    pub report_file: Option<PathBuf>,
    /// Read along to find the phases.
    pub phases: bool,
    /// The preflight that the command has to pass first.
    pub preflight: Option<PreflightConfig>,
    /// The command and its arguments; never empty.
    pub command: Vec<OsString>,
}

impl RunConfig {
    /// Resolves the arguments.
    ///
    /// # Errors
    /// Wrong usage; exit code 2.
    pub fn resolve(common: Common, args: RunArgs, origins: &Origins) -> Result<Self, ConfigError> {
        let wants_preflight = args.preflight;
        let observe = ObserveConfig::resolve(common.clone(), args.observe, origins)?;
        let preflight = wants_preflight
            .then(|| preflight(common, &observe, origins))
            .transpose()?;
        Ok(Self {
            observe,
            report_file: args.report_file,
            phases: !args.no_phases,
            preflight,
            command: args.command,
        })
    }

    /// The command without its arguments.
    #[must_use]
    pub fn program(&self) -> &OsStr {
        self.command
            .first()
            .map_or(OsStr::new(""), OsString::as_os_str)
    }

    /// Its arguments.
    #[must_use]
    pub fn arguments(&self) -> &[OsString] {
        self.command.get(1..).unwrap_or_default()
    }
}

/// `joinprobe preflight` as it would be without flags, judged as this run is.
fn preflight(
    common: Common,
    observe: &ObserveConfig,
    origins: &Origins,
) -> Result<PreflightConfig, ConfigError> {
    let bare = Args::command().try_get_matches_from(["joinprobe", "preflight"]);
    let bare = bare.and_then(|matches| Args::from_arg_matches(&matches));
    let Ok(Args {
        command: Command::Preflight(args),
        ..
    }) = bare
    else {
        return Err(ConfigError::NoTargets);
    };
    let mut config = PreflightConfig::resolve(common, *args, origins)?;
    config.worker = observe.join == Join::Worker;
    config.decision = observe.decision.clone();
    config.discovery.files = observe.root.is_some();
    config.discovery.root = observe.root.clone().unwrap_or_default();
    Ok(config)
}
