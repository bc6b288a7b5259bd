//! `joinprobe run`, resolved.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use clap::{CommandFactory as _, FromArgMatches as _};

use super::sources::Origins;
use super::{Common, ConfigError, ObserveConfig, PreflightConfig};
use crate::cli::{Args, Command, ObserveArgs, PreflightArgs, ProbingArgs, RunArgs};
use crate::discover::Origin;

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
    pub async fn resolve(
        common: Common,
        args: RunArgs,
        origins: &Origins,
    ) -> Result<Self, ConfigError> {
        if !args.preflight {
            needs_preflight(&args.probing, origins)?;
        }
        let preflight = args
            .preflight
            .then(|| preflight_args(&args.observe, args.probing, &args.command))
            .flatten();
        let observe = ObserveConfig::resolve(common.clone(), args.observe, origins).await?;
        let preflight = preflight
            .map(|args| PreflightConfig::resolve(common, *args, origins))
            .transpose()?
            .map(|config| PreflightConfig {
                decision: observe.decision.clone(),
                ..config
            });
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

/// The arguments of `joinprobe preflight` that say the same as these. How its verdict is reached is left at the defaults.
fn preflight_args(
    observe: &ObserveArgs,
    probing: ProbingArgs,
    command: &[OsString],
) -> Option<Box<PreflightArgs>> {
    let bare = Args::command().try_get_matches_from(["joinprobe", "preflight"]);
    let Args {
        command: Command::Preflight(mut args),
        ..
    } = Args::from_arg_matches(&bare.ok()?).ok()?
    else {
        return None;
    };
    args.probing = probing;
    args.worker = observe.worker;
    args.root.clone_from(&observe.root);
    args.no_discovery = observe.no_discovery;
    if args.probing.join_config.is_none() && !args.no_discovery {
        args.probing.join_config = kubeadm_config(command);
    }
    Some(args)
}

/// The file that `kubeadm join` itself is given.
fn kubeadm_config(command: &[OsString]) -> Option<PathBuf> {
    let (program, arguments) = command.split_first()?;
    let joins = arguments.iter().any(|argument| argument == "join");
    if Path::new(program).file_name()? != "kubeadm" || !joins {
        return None;
    }
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--config" {
            return arguments.next().map(PathBuf::from);
        }
        if let Some(path) = argument.as_bytes().strip_prefix(b"--config=") {
            return Some(OsStr::from_bytes(path).into());
        }
    }
    None
}

/// Targets that were typed are meant for a preflight: without one they would silently do nothing. The environment and the
/// file may name them for other commands.
fn needs_preflight(probing: &ProbingArgs, origins: &Origins) -> Result<(), ConfigError> {
    let given = [
        ("--etcd", !probing.etcd.is_empty()),
        ("--etcd-peer", !probing.etcd_peer.is_empty()),
        ("--apiserver", !probing.apiserver.is_empty()),
        ("--join-config", probing.join_config.is_some()),
    ];
    let typed = given.into_iter().find(|(flag, given)| {
        *given && matches!(origins.of(flag.trim_start_matches('-')), Origin::Flag(_))
    });
    match typed {
        None => Ok(()),
        Some((given, _)) => Err(ConfigError::Needs {
            given,
            missing: "--preflight",
            reason: "a run by itself watches whatever talks on the watched ports",
        }),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn resolve(arguments: &[&str]) -> Result<RunConfig, String> {
        let all = ["joinprobe", "run"].iter().chain(arguments);
        let args = Args::try_parse_from(all).map_err(|error| error.to_string())?;
        let common = Common::resolve(&args.global);
        let Command::Run(args) = args.command else {
            panic!("not run");
        };
        // No name is looked up, so nothing has to be waited for.
        let origins = Origins::default();
        let resolving = RunConfig::resolve(common, *args, &origins);
        let resolved = futures_util::FutureExt::now_or_never(resolving).unwrap();
        resolved.map_err(|error| error.to_string())
    }

    #[test]
    fn the_preflight_takes_what_preflight_takes() {
        let line = "--preflight --etcd a:1 --worker --root /host --strict -- true --etcd b:1";
        let config = resolve(&line.split(' ').collect::<Vec<_>>()).unwrap();
        let preflight = config.preflight.unwrap();
        assert_eq!(preflight.targets.len(), 1);
        assert!(preflight.worker && preflight.decision.leniency.strict);
    }

    #[test]
    fn targets_without_a_preflight_are_refused() {
        let error = resolve(&["--etcd", "a:1", "--", "true"]).unwrap_err();
        assert!(error.contains("--etcd needs --preflight"), "{error}");
    }

    #[test]
    fn kubeadms_own_configuration_is_read() {
        for (line, expected) in [
            ("kubeadm join --config a.yaml", Some("a.yaml")),
            (
                "/usr/bin/kubeadm join x:6443 --config=a.yaml -v5",
                Some("a.yaml"),
            ),
            ("kubeadm join x:6443", None),
            ("kubeadm init --config a.yaml", None),
            ("kubectl join --config a.yaml", None),
        ] {
            let mut arguments = vec!["--preflight", "--"];
            arguments.extend(line.split(' '));
            let found = resolve(&arguments).unwrap().preflight.unwrap().discovery;
            let expected = expected.map(PathBuf::from);
            assert_eq!(found.hints.join_config, expected, "{line}");
        }
    }
}
