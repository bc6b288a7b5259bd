//! Names that look like a setting and are none.

use std::ffi::OsString;

use clap::Command;

use super::candidates::{every_flag, variable};

/// What every variable's name begins with.
const PREFIX: &str = "JOINPROBE_";

/// Variables of the programs that build and test joinprobe, and that start it.
const OF_OTHERS: [&str; 3] = [
    "JOINPROBE_BIN",
    "JOINPROBE_EBPF_TOOLCHAIN",
    "JOINPROBE_KERNELS",
];

/// A name is taken for a misspelt one when they are as alike as this (1 is the same).
const ALIKE: f64 = 0.8;

/// A sentence for each variable of this environment that has our prefix, a value, and no flag.
pub fn unknown_variables(
    command: &Command,
    environment: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<String> {
    let known: Vec<String> = every_flag(command).map(variable).collect();
    let mut complaints: Vec<String> = environment
        .filter(|(_, value)| !value.is_empty())
        .filter_map(|(name, _)| {
            let name = name.to_string_lossy();
            let unknown = name.starts_with(PREFIX)
                && !OF_OTHERS.contains(&name.as_ref())
                && !is_service_link(&name)
                && !known.iter().any(|known| *known == name);
            unknown.then(|| complaint(&name, &known))
        })
        .collect();
    complaints.sort_unstable();
    complaints
}

fn complaint(name: &str, known: &[String]) -> String {
    let name = name.escape_debug().to_string();
    // What they all begin with would make the shortest the nearest.
    let proper = |name: &str| name.trim_start_matches(PREFIX).to_ascii_uppercase();
    let known: Vec<String> = known.iter().map(|known| proper(known)).collect();
    let nearest = nearest(&proper(&name), known.iter().map(String::as_str));
    let remedy = match nearest {
        Some(nearest) => format!("{PREFIX}{nearest} is meant, perhaps"),
        None => "each flag has a variable, --etcd-cacert has JOINPROBE_ETCD_CACERT; unset this one"
            .to_owned(),
    };
    format!("the environment variable {name} is not one of joinprobe's and is ignored: {remedy}")
}

/// The kubelet tells a pod the services of its namespace by variables with their names in front, and a service may be
/// called joinprobe (kubelet's `envvars.FromServices`).
fn is_service_link(name: &str) -> bool {
    let digits = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    name.contains("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.ends_with("_PORT")
        || name
            .split_once("_PORT_")
            .is_some_and(|(_, rest)| digits(rest))
}

/// The name that is most like this one; `None` when none is.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Args;

    fn complaints(variables: &[(&str, &str)]) -> Vec<String> {
        let mut command = Args::command();
        command.build();
        let variables = variables
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        unknown_variables(&command, variables)
    }

    #[test]
    fn what_is_misspelt_is_said_with_the_nearest_name() {
        for (name, nearest) in [
            ("JOINPROBE_ETCD_CA_CERT", "JOINPROBE_ETCD_CACERT"),
            ("JOINPROBE_TIMEUOT", "JOINPROBE_TIMEOUT"),
            ("JOINPROBE_APISERVERS", "JOINPROBE_APISERVER"),
            ("JOINPROBE_ETCDCERT", "JOINPROBE_ETCD_CERT"),
            ("JOINPROBE_etcd", "JOINPROBE_ETCD"),
        ] {
            let complaints = complaints(&[(name, "x"), ("HOME", "/")]);
            let [complaint] = &complaints[..] else {
                panic!("{complaints:?}");
            };
            for part in [name, &format!("{nearest} is meant")] {
                assert!(complaint.contains(part), "{complaint} lacks {part}");
            }
        }
        let complaints = complaints(&[("JOINPROBE_\u{1b}[31m", "x")]);
        assert!(!complaints[0].contains('\u{1b}'), "{complaints:?}");
    }

    #[test]
    fn what_others_set_is_passed_over() {
        let complaints = complaints(&[
            ("JOINPROBE_BIN", "/usr/bin/joinprobe"),
            ("JOINPROBE_EBPF_TOOLCHAIN", "/opt"),
            ("JOINPROBE_KERNELS", "/opt"),
            ("JOINPROBE_SERVICE_HOST", "10.96.0.7"),
            ("JOINPROBE_METRICS_SERVICE_PORT_HTTP", "9780"),
            ("JOINPROBE_PORT", "tcp://10.96.0.7:9780"),
            ("JOINPROBE_PORT_9780_TCP_ADDR", "10.96.0.7"),
            ("JOINPROBE_ETCD", "a:1"),
            ("JOINPROBE_TIMEUOT", ""),
            ("OTHER", "x"),
        ]);
        assert_eq!(complaints, [""; 0]);
    }
}
