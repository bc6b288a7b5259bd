//! Arguments as clap reads them; nothing but [`crate::config`] looks at these.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use super::{DecisionArgs, ProbingArgs, RunArgs, TimingArgs, WatchArgs};

const EXIT_CODES: &str = "Exit codes:
  0  pass (warnings included)
  1  could not measure (not root, kernel refuses, another program owns the hook)
  2  wrong usage or configuration, unreadable or mismatched key files
  3  fail
  4  warn (only with --strict)
  5  inconclusive, or etcd not measured (0 with --allow-inconclusive)
With -o nagios instead: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN (what 1, 2 and 5 stand for above).
With -o npd instead: 0 no problem, 1 problem, 2 unknown.";

const WATCH_EXIT_CODES: &str = "Exit codes: 0 whatever was seen, but with --fail-on-verdict
  0  pass (warnings included)
  3  fail
  4  warn (only with --strict)
  5  inconclusive, or etcd not seen (0 with --allow-inconclusive)
and always
  1  could not measure (not root, kernel refuses, another program owns the hook)
  2  wrong usage or configuration
-o nagios and -o npd imply --fail-on-verdict, with exit codes of their own: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN;
0 no problem, 1 problem, 2 unknown.";

const REPORT_EXIT_CODES: &str = "Exit codes:
  0  the report was made, whatever it says
  1  it could not be written
  2  wrong usage, or a file that cannot be read or is none of joinprobe's";

const RUN_EXIT_CODES: &str =
    "Exit codes: the command's own when it is not 0, or 128 and the signal that ended it; otherwise
  0  pass (warnings included)
  1  could not measure; the command was not started
  2  wrong usage, or the command cannot be started
  3  fail
  4  warn (only with --strict)
  5  inconclusive, or etcd not measured (0 with --allow-inconclusive)";

const DOCTOR_EXIT_CODES: &str = "Exit codes:
  0  joinprobe can measure here, be it that something is lost
  1  it cannot
  2  wrong usage";

/// Says whether the network lets a node join a Kubernetes control plane.
#[derive(Debug, Parser)]
#[command(name = "joinprobe", version, about, after_help = EXIT_CODES, propagate_version = true)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Options every command takes.
    #[command(flatten)]
    pub global: GlobalArgs,
}

/// Options every command takes.
#[derive(Debug, clap::Args)]
pub struct GlobalArgs {
    /// YAML file whose keys are flags without their dashes; every flag can also come from the environment, --etcd-cacert
    /// as `JOINPROBE_ETCD_CACERT`
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// Colour on standard output
    #[arg(long, value_enum, default_value_t = ColorChoice::Auto, global = true)]
    pub color: ColorChoice,
    /// Say more on standard error; repeat for debug lines
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub verbose: u8,
    /// Log the kernel side's own debug lines
    #[arg(long, global = true)]
    pub bpf_log: bool,
    /// Root of the cgroup v2 hierarchy [default: found in /proc/self/mountinfo]
    #[arg(long, value_name = "PATH", global = true)]
    pub cgroup: Option<PathBuf>,
    /// Where RTT samples come from; auto is the best that kernel and rights give
    #[arg(long, value_enum, default_value_t = RttSourceChoice::Auto, global = true)]
    pub rtt_source: RttSourceChoice,
    /// Name of this node in the output [default: the host name]
    #[arg(long, value_name = "NAME", global = true)]
    pub node_name: Option<String>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Probe etcd and API servers once and give a verdict; made for preKubeadmCommands
    #[command(after_help = EXIT_CODES)]
    Preflight(Box<PreflightArgs>),
    /// Put saved measurements together: quantiles, histograms and a page with plots
    #[command(after_help = REPORT_EXIT_CODES)]
    Report(ReportArgs),
    /// Stay attached and report what talks to etcd and API servers, until a signal or a condition ends it
    #[command(after_help = WATCH_EXIT_CODES)]
    Watch(Box<WatchArgs>),
    /// Watch while a command such as `kubeadm join` runs, and tell its phases apart
    #[command(after_help = RUN_EXIT_CODES)]
    Run(Box<RunArgs>),
    /// Say what this host can do and what it cannot, each with the reason and the remedy
    #[command(after_help = DOCTOR_EXIT_CODES)]
    Doctor(DoctorArgs),
    /// Print the JSON Schema of -o json
    Schema,
    /// Print what makes a shell complete joinprobe's arguments
    Completions(CompletionsArgs),
}

/// `joinprobe completions`.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// `joinprobe doctor`.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Format of the result on standard output
    #[arg(short, long, value_enum, default_value_t = PlainFormat::Table)]
    pub output: PlainFormat,
}

/// A format of what is no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlainFormat {
    /// For people.
    Table,
    /// One JSON object, schema joinprobe/v1.
    Json,
}

/// `joinprobe preflight`.
#[derive(Debug, clap::Args)]
pub struct PreflightArgs {
    /// What is measured, and how.
    #[command(flatten)]
    pub probing: ProbingArgs,
    /// The node joins as a worker: etcd need not be measured
    #[arg(long, help_heading = "Targets")]
    pub worker: bool,
    /// Look for all these files below DIR, for example where a container has the host's filesystem mounted
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/",
        hide_default_value = true,
        help_heading = "Discovery"
    )]
    pub root: PathBuf,
    /// Look at no files but certificates and keys that are named; targets then come from flags only
    #[arg(long, help_heading = "Discovery")]
    pub no_discovery: bool,

    /// How the verdict is reached.
    #[command(flatten)]
    pub decision: DecisionArgs,
    /// Format of the result on standard output
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Table, help_heading = "Output")]
    pub output: OutputFormat,
}

/// `joinprobe report`.
#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// Files that `--hlog` or `-o json` wrote, of one node or many; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Keep apart what different nodes measured of one target
    #[arg(long)]
    pub per_node: bool,
    /// Write one self-contained page with plots
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Format of the report on standard output
    #[arg(short, long, value_enum, default_value_t = PlainFormat::Table)]
    pub output: PlainFormat,
    /// The same as -o json
    #[arg(long)]
    pub json: bool,
    /// The cluster's own raft timing, which the recommendation is held against.
    #[command(flatten)]
    pub timing: TimingArgs,
}

/// A result format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people.
    Table,
    /// One JSON object, schema joinprobe/v1.
    Json,
    /// One line for a log.
    Short,
    /// A monitoring plugin's status line with performance data, and its exit codes.
    Nagios,
    /// A message for node-problem-detector, at most 80 bytes, and its exit codes.
    Npd,
    /// XML as `JUnit` writes it, a test case per check.
    Junit,
}

/// Where RTT samples come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RttSourceChoice {
    /// The best that can be had.
    Auto,
    /// As the kernel hands them over (6.10 and later).
    Raw,
    /// Computed from the smoothed RTT before and after.
    Reconstructed,
    /// The smoothed RTT in their place.
    Smoothed,
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}
