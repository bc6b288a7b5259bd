//! Builds, tests and shows joinprobe: `cargo xtask --help`.

mod apt;
mod bench;
mod build_ebpf;
mod check_aarch64;
mod demo;
mod dist;
mod manuals;
mod packages;
mod privilege;
mod python;
mod simulate_verdicts;
mod static_build;
mod test;
mod test_kernels;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Builds, tests and shows joinprobe.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Bench(bench::Args),
    /// A server that a benchmark starts
    #[command(hide = true)]
    BenchServer,
    /// What a benchmark's virtual machine does
    #[command(hide = true)]
    BenchGuest(bench::GuestArgs),
    BuildEbpf(build_ebpf::Args),
    CheckAarch64(check_aarch64::Args),
    /// Write shell completions for bash, zsh and fish
    Completions(manuals::Args),
    Demo(demo::Args),
    Dist(dist::Args),
    SimulateVerdicts(simulate_verdicts::Args),
    /// Write man pages, one per command
    Man(manuals::Args),
    Test(test::Args),
    TestKernels(test_kernels::Args),
}

#[allow(clippy::print_stderr, reason = "a task says on stderr why it failed")]
fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Bench(args) => bench::run(&args),
        Command::BenchServer => bench::serve_forever(),
        Command::BenchGuest(args) => bench::run_as_guest(&args),
        Command::BuildEbpf(args) => build_ebpf::run(&args),
        Command::CheckAarch64(args) => check_aarch64::run(&args),
        Command::Completions(args) => manuals::run(manuals::Manual::Completions, &args),
        Command::Man(args) => manuals::run(manuals::Manual::Man, &args),
        Command::Demo(args) => demo::run(&args),
        Command::Dist(args) => dist::run(&args),
        Command::SimulateVerdicts(args) => simulate_verdicts::run(&args),
        Command::Test(args) => test::run(&args),
        Command::TestKernels(args) => test_kernels::run(&args),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}
