//! Arguments of the commands that stay attached: `watch` and `run`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::{DecisionArgs, OutputFormat, ProbingArgs, duration, number};

/// What gets a row of its own beside the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum GroupBy {
    /// Each process that opens connections, by its name.
    Process,
}

/// What `watch` and `run` have in common.
#[derive(Debug, clap::Args)]
pub struct ObserveArgs {
    /// Port of etcd's client side; repeatable
    #[arg(long, value_name = "PORT", default_value = "2379", value_parser = number::port, action = clap::ArgAction::Append, help_heading = "Targets")]
    pub etcd_port: Vec<u16>,
    /// Port of etcd's peer side; repeatable
    #[arg(long, value_name = "PORT", default_value = "2380", value_parser = number::port, action = clap::ArgAction::Append, help_heading = "Targets")]
    pub etcd_peer_port: Vec<u16>,
    /// Port of API servers and load balancers; repeatable
    #[arg(long, value_name = "PORT", default_value = "6443", value_parser = number::port, action = clap::ArgAction::Append, help_heading = "Targets")]
    pub apiserver_port: Vec<u16>,
    /// Single address to watch on a port that is not watched as a whole, for example lb.example:443=apiserver;
    /// repeatable
    #[arg(
        long,
        value_name = "HOST:PORT=ROLE",
        action = clap::ArgAction::Append,
        help_heading = "Targets"
    )]
    pub watch: Vec<String>,
    /// The node joins as a worker: etcd need not be seen
    #[arg(long, help_heading = "Targets")]
    pub worker: bool,
    /// Watch every network namespace, those of pods included
    #[arg(long, help_heading = "Targets")]
    pub all_namespaces: bool,
    /// Tell apart whose connections they are: a row for each process, by name, and target
    #[arg(long, value_name = "WHAT", value_enum, help_heading = "Targets")]
    pub by: Option<GroupBy>,
    /// Remote addresses (with --by process, processes at one) that are told apart; later ones share one place per role
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = number::targets, help_heading = "Targets")]
    pub max_targets: u32,

    /// Look for etcd's manifest, which tells the timing that limits are derived from, below DIR
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/",
        hide_default_value = true,
        help_heading = "Discovery"
    )]
    pub root: PathBuf,
    /// Look at no files; timing then comes from flags only
    #[arg(long, help_heading = "Discovery")]
    pub no_discovery: bool,

    /// Time between reports
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse_interval, help_heading = "Reports")]
    pub interval: Duration,
    /// How the verdict is reached.
    #[command(flatten)]
    pub decision: DecisionArgs,

    /// Format of the reports
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Table, help_heading = "Output")]
    pub output: OutputFormat,
    /// Serve Prometheus metrics at http://ADDR:PORT/metrics
    #[arg(long, value_name = "ADDR:PORT", value_parser = number::listen, help_heading = "Output")]
    pub listen: Option<SocketAddr>,
    /// Write metrics for node_exporter's textfile collector
    #[arg(long, value_name = "PATH.prom", help_heading = "Output")]
    pub textfile: Option<PathBuf>,
    /// Append an HdrHistogram interval log
    #[arg(long, value_name = "PATH", help_heading = "Output")]
    pub hlog: Option<PathBuf>,
}

/// `joinprobe watch`.
#[derive(Debug, clap::Args)]
pub struct WatchArgs {
    /// What `watch` and `run` have in common.
    #[command(flatten)]
    pub observe: ObserveArgs,
    /// End after so long
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_positive, help_heading = "End")]
    pub duration: Option<Duration>,
    /// End when this file appears; /run/cluster-api/bootstrap-success.complete is the usual one
    #[arg(long, value_name = "PATH", help_heading = "End")]
    pub until_file: Option<PathBuf>,
    /// End after so long even if the file never appears
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_positive, help_heading = "End")]
    pub max_duration: Option<Duration>,
    /// Make the verdict the exit code
    #[arg(long, help_heading = "Verdict")]
    pub fail_on_verdict: bool,
}

/// `joinprobe run`.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// What `watch` and `run` have in common.
    #[command(flatten)]
    pub observe: ObserveArgs,
    /// Write the reports to this file instead of standard error; standard output is the command's own
    #[arg(long, value_name = "PATH", help_heading = "Output")]
    pub report_file: Option<PathBuf>,
    /// Hand the command its standard output and error untouched; its phases are then not known
    #[arg(long, help_heading = "Command")]
    pub no_phases: bool,
    /// Run a preflight first, and do not start the command if it fails; without targets, kubeadm's own --config and what
    /// is on disk name them
    #[arg(long, help_heading = "Command")]
    pub preflight: bool,
    /// What the preflight measures, and how.
    #[command(flatten)]
    pub probing: ProbingArgs,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
