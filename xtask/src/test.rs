//! `cargo xtask test`: everything that can be checked here, as CI runs it.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Result, ensure};

use crate::build_ebpf;
use crate::check_aarch64;
use crate::packages::{self, KERNELS, LAB, TESTS};
use crate::privilege::{as_root, has_sudo, inherited, is_root};
use crate::python;
use crate::simulate_verdicts;
use crate::test_kernels;
use crate::workspace::{cargo, finish, joinprobe, say};

/// Checks formatting and lints and runs all tests, those in the lab included.
///
/// The lab needs root or sudo. On Debian and Ubuntu, what is missing is installed.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The long sweeps too.
    #[arg(long)]
    full: bool,
    /// Only the tests whose name contains this, without formatting and lints.
    #[arg(value_name = "NAME")]
    only: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let began = Instant::now();
    packages::ensure_present(&[LAB, TESTS, KERNELS])?;
    python::ensure_present()?;
    if args.only.is_none() {
        say("formatting");
        finish(cargo("fmt")?.args(["--all", "--check"]))?;
        say("the eBPF object's source");
        build_ebpf::check_source()?;
        say("lints");
        finish(cargo("clippy")?.args(["--all-targets", "--", "--deny", "warnings"]))?;
    }
    say("building joinprobe");
    let binary = joinprobe()?;
    let path = packages::path()?;
    say("tests");
    if args.only.is_none() {
        finish(cargo("test")?.args(["--quiet", "--doc"]))?;
    }
    let mut tests = runner(args)?;
    tests.env("JOINPROBE_BIN", &binary).env("PATH", &path);
    if !is_root() {
        if has_sudo() {
            through_sudo(&mut tests, &path, &binary)?;
        } else {
            say("neither root nor sudo: the tests in the lab cannot run");
        }
    }
    finish(&mut tests)?;
    if args.only.is_none() {
        test_kernels::every_time(&binary, args.full)?;
    }
    if args.full && args.only.is_none() {
        say("the build for aarch64");
        check_aarch64::check()?;
        say("the simulation of verdicts");
        simulate_verdicts::check()?;
    }
    say(&format!("all well after {} s", began.elapsed().as_secs()));
    Ok(ExitCode::SUCCESS)
}

/// nextest where it is installed: it shows each test's time and keeps tests apart. Otherwise what cargo brings.
fn runner(args: &Args) -> Result<Command> {
    let nextest = cargo("nextest")?
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let mut tests;
    if nextest.is_ok_and(|status| status.success()) {
        tests = cargo("nextest")?;
        tests.args([
            "run",
            "--no-fail-fast",
            "--status-level",
            "all",
            "--final-status-level",
            "fail",
        ]);
        if args.full {
            tests.args(["--run-ignored", "all"]);
        }
        tests.args(&args.only);
    } else {
        tests = cargo("test")?;
        tests
            .args(["--no-fail-fast", "--lib", "--bins", "--tests"])
            .args(&args.only);
        if args.full {
            tests.args(["--", "--include-ignored"]);
        }
    }
    Ok(tests)
}

/// Lets cargo start every test program through sudo: what is built still belongs to the user.
fn through_sudo(tests: &mut Command, path: &OsStr, binary: &Path) -> Result<()> {
    let inherited = inherited(&["CI", "RUST_BACKTRACE"]);
    let mut variables = vec![("PATH", path), ("JOINPROBE_BIN", binary.as_os_str())];
    variables.extend(
        inherited
            .iter()
            .map(|(name, value)| (*name, value.as_os_str())),
    );
    let words = as_root(&variables);
    // Cargo splits the value at spaces.
    let spaced = words
        .iter()
        .any(|word| word.to_string_lossy().contains(' '));
    ensure!(
        !spaced,
        "cannot use sudo with spaces in PATH or in the workspace's folder: run this as root"
    );
    let triple = format!("{}_unknown_linux_gnu", std::env::consts::ARCH).to_uppercase();
    tests.env(
        format!("CARGO_TARGET_{triple}_RUNNER"),
        words.join(OsStr::new(" ")),
    );
    Ok(())
}
